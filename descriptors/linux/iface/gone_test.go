package iface

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux/internal/fakelinux"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

// Nobody tells when the process of a namespace ends. Once Retrieve does not find the namespace
// any more, the agent lets go of it: otherwise its links would exist for as long as the agent.
func TestRetrieveReleasesNamespacesThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const process = "/proc/1234/ns/net"
		host := fakelinux.New("/proc/thread-self/ns/net", process, "/run/netns/red")
		h, b := newHandler(host)
		of := func(name string, ns *namespace.NetNamespace) *value {
			return &value{Name: name, Type: interfaces.Interface_DUMMY, Namespace: ns, IpAddresses: []string{"10.0.0.1/24"}}
		}
		ends := of("ends", &namespace.NetNamespace{Type: namespace.NetNamespace_PID, Reference: "1234"})
		stays := of("stays", red())
		for _, v := range []*value{ends, stays} {
			b.Create(t, v)
			for _, kv := range derived("", v) {
				if _, ok := keys.ParseAddress(kv.Key); !ok {
					continue
				}
				if _, err := h.createAddress(t.Context(), kv.Key, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		open := func(name string) bool {
			space, ok := h.Spaces.ByID(b.All()[name].NS)
			if ok {
				space.Close()
			}
			return ok
		}
		b.Retrieve(t, ends, stays)
		if !open("ends") || !open("stays") {
			t.Fatal("a namespace with interfaces was released")
		}
		host.Remove(process)
		if found := b.Retrieve(t, ends, stays); len(found) != 1 {
			t.Fatalf("retrieved %v", found)
		}
		<-time.After(time.Minute) // a message about its links may come for some seconds
		synctest.Wait()
		if open("ends") {
			t.Error("the namespace of the process that ended is still open")
		}
		if !open("stays") {
			t.Error("the other namespace was released")
		}
	})
}

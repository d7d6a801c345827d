package iface

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/fakelinux"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// Installations of one label.
const (
	instA = "aaaaaaaaaaaaaaaa"
	instB = "bbbbbbbbbbbbbbbb"
)

func agentOn(host *fakelinux.Host, label, installation string) (*handler, *bench) {
	h, b := newHandler(host)
	h.Label, h.Installation = label, installation
	return h, b
}

// A link of another agent that lives is never changed or removed, and a value that needs
// its name is refused with the owner's name.
func TestLinksOfAnotherAgentThatLives(t *testing.T) {
	host := fakelinux.New("/proc/thread-self/ns/net", "/run/netns/red")
	a, benchA := agentOn(host, "vpp1", instA)
	v := &value{Name: "d", Type: interfaces.Interface_DUMMY, Namespace: red(), HostIfName: "d0", Enabled: true}
	benchA.Create(t, v)
	space, err := a.Spaces.Open(red())
	if err != nil {
		t.Fatal(err)
	}
	presence, err := space.Announce(instA)
	if err != nil {
		t.Fatal(err)
	}
	before := host.String()

	b, benchB := agentOn(host, "vpp1", instB)
	if found := benchB.Retrieve(t, v); len(found) > 0 {
		t.Errorf("B takes for its own %v", found)
	}
	_, err = b.create(t.Context(), keyOf("d"), v)
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "label vpp1, installation "+instA) {
		t.Errorf("B creates what A has: %v", err)
	}
	c, _ := agentOn(host, "vpp2", instB)
	if _, err = c.create(t.Context(), keyOf("d"), v); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "label vpp1, installation "+instA) {
		t.Errorf("an agent of another label creates what A has: %v", err)
	}
	if err := b.delete(t.Context(), keyOf("d"), v, benchA.All()["d"]); err != nil {
		t.Error(err)
	}
	presence.Close() // A is down for a moment
	if found := benchB.Retrieve(t); len(found) > 0 {
		t.Errorf("B takes for its own, while A is down, %v", found)
	}
	if after := host.String(); after != before || !strings.Contains(linkOwner(t, a, "d0"), instA) {
		t.Errorf("the host is\n%s\nwas\n%s\nowner %s", after, before, linkOwner(t, a, "d0"))
	}
}

// What an earlier installation has left, or an older release, which knew no installations,
// is adopted and marked.
func TestLinksOfAnInstallationThatDoesNotLive(t *testing.T) {
	for _, earlier := range []string{instA, ""} {
		host := fakelinux.New("/proc/thread-self/ns/net", "/run/netns/red")
		_, benchA := agentOn(host, "vpp1", earlier)
		v := &value{Name: "d", Type: interfaces.Interface_DUMMY, Namespace: red(), HostIfName: "d0", Enabled: true}
		left := &value{Name: "e", Type: interfaces.Interface_DUMMY, Namespace: red(), HostIfName: "e0", Enabled: true}
		benchA.Create(t, v)
		benchA.Create(t, left)

		other, benchOther := agentOn(host, "vpp2", instB)
		if found := benchOther.Retrieve(t, v); len(found) > 0 {
			t.Errorf("an agent of another label takes for its own %v", found)
		}
		b, benchB := agentOn(host, "vpp1", instB)
		found := benchB.Retrieve(t, v)
		if len(found) != 2 || linkOwner(t, b, "d0") != instB || linkOwner(t, b, "e0") != instB {
			t.Errorf("found %v, owners %q and %q; want both, marked", found, linkOwner(t, b, "d0"), linkOwner(t, b, "e0"))
		}
		if err := other.delete(t.Context(), keyOf("e"), left, benchA.All()["e"]); err != nil || linkOwner(t, b, "e0") != instB {
			t.Errorf("an agent of another label removed it: %v", err)
		}
		if err := b.delete(t.Context(), keyOf("e"), left, benchA.All()["e"]); err != nil || strings.Contains(host.String(), "e0") {
			t.Errorf("it is not removed: %v\n%s", err, host)
		}
	}
}

func linkOwner(t *testing.T, h *handler, name string) string {
	t.Helper()
	space, err := h.Spaces.Open(red())
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	l, err := space.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Owner
}

// An agent that is killed at any moment of making or removing a link leaves nothing that its next life does not
// remove, or take over.
func TestKilledAtAnyCall(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "red"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	values := map[string][]*value{
		"DUMMY":       {{Name: "d", Type: interfaces.Interface_DUMMY, Namespace: red(), HostIfName: "d0", Enabled: true}},
		"VRF_DEVICE":  {{Name: "v", Type: interfaces.Interface_VRF_DEVICE, Link: &interfaces.Interface_VrfDev{VrfDev: &interfaces.VrfDevLink{RoutingTable: 7}}}},
		"VETH":        {veth("a", "z", in(red())), veth("z", "a")},
		"one end":     {veth("a", "z", in(red()))},
		"VETH in own": {veth("a", "z"), veth("z", "a")},
	}
	for kind, wanted := range values {
		for _, comes := range []string{"wanted", "gone"} {
			t.Run(kind+" "+comes, func(t *testing.T) {
				for n := 0; ; n++ {
					host := fakelinux.New("/proc/thread-self/ns/net", filepath.Join(folder, "red"))
					bare := linksOf(host)
					h, _ := handlerIn(host, folder)
					h.Installation = instA
					ended := killedAfter(t, host, h, n, wanted)
					h, b := handlerIn(host, folder)
					h.Installation = instA
					if comes == "wanted" {
						b.Retrieve(t, wanted...)
						for _, v := range wanted {
							b.Create(t, v)
						}
						b.Expect(t, wanted...)
					}
					removeFound(t, h, b)
					if got := linksOf(host); got != bare {
						t.Fatalf("killed after %d calls: the host has\n%s\nwant\n%s", n, got, bare)
					}
					if ended {
						t.Logf("%d calls", n)
						return
					}
				}
			})
		}
	}
}

// linksOf is the state of a host without its sysctls, which stay.
func linksOf(host *fakelinux.Host) (text string) {
	for line := range strings.Lines(host.String()) {
		if !strings.Contains(line, "sysctl") {
			text += line
		}
	}
	return text
}

// killedAfter has an agent make and remove values until it is killed after n calls. ended: it was not killed.
func killedAfter(t *testing.T, host *fakelinux.Host, h *handler, n int, values []*value) (ended bool) {
	t.Helper()
	host.KillAfter(n)
	metas := make([]Meta, len(values))
	var err error
	for i, v := range values {
		if err == nil {
			metas[i], err = h.create(t.Context(), keyOf(v.Name), v)
		}
	}
	for i, v := range values {
		if err == nil {
			err = h.delete(t.Context(), keyOf(v.Name), v, metas[i])
		}
	}
	host.KillAfter(-1)
	if err != nil && !errors.Is(err, unix.ESHUTDOWN) {
		t.Fatalf("after %d calls: %v", n, err)
	}
	return err == nil
}

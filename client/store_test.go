package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// A program writes into the store of an agent that need not run. In place of the memory, it has the client of a
// store: etcd.Dial of connectors/etcd, and likewise for Redis and Consul.
func ExampleNewStore() {
	ctx := context.Background()
	var memory conformance.Memory
	store := client.NewStore(&memory, "vpp1", client.Options{})
	if err := store.Put(ctx, &interfaces.Interface{Name: "loop", Type: interfaces.Interface_LOOPBACK, Enabled: true}); err != nil {
		fmt.Println(err)
	}
	err := store.Put(ctx, &interfaces.Interface{Name: "small", Type: interfaces.Interface_LOOPBACK, Mtu: 5})
	fmt.Println(err)
	pairs, err := memory.List(ctx, "/vnf-agent/vpp1/")
	for _, p := range pairs {
		fmt.Printf("%s %s\n", p.Key, p.Value)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// config/linux/interfaces/v2/interface/small is INVALID: mtu is 5; expected 68 to 4294967295
	// /vnf-agent/vpp1/config/linux/interfaces/v2/interface/loop {"name":"loop","type":"LOOPBACK","enabled":true}
}

func TestStore(t *testing.T) {
	ctx := t.Context()
	var memory conformance.Memory
	store := client.NewStore(&memory, "vpp1", client.Options{})
	link := func(name string, mtu uint32) *interfaces.Interface {
		return &interfaces.Interface{Name: name, Type: interfaces.Interface_LOOPBACK, Mtu: mtu}
	}
	has := func(step string, want ...*interfaces.Interface) {
		t.Helper()
		got, err := store.Get(ctx)
		if err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if !slices.EqualFunc(got, want, func(v client.Value, w *interfaces.Interface) bool { return proto.Equal(v.Message, w) }) {
			t.Errorf("%s: the store has %v, want %v", step, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(memory.Put(ctx, "/vnf-agent/vpp1/config/of/another/program", []byte("x")))
	must(store.Put(ctx, link("a", 0), link("b", 0)))
	must(store.Commit(ctx, client.Put(link("a", 1400)), client.Delete(link("b", 0)), client.Put(link("c", 0))))
	if _, err := store.Get(ctx); err == nil {
		t.Error("a key without a model is no error")
	}
	must(store.Replace(ctx, link("a", 1400), link("d", 0)))
	if got, err := memory.Get(ctx, "/vnf-agent/vpp1/config/of/another/program"); err != nil || string(got) != "x" {
		t.Errorf("the key of another program is %s, %v", got, err)
	}
	if _, err := memory.Delete(ctx, "/vnf-agent/vpp1/config/of/another/program"); err != nil {
		t.Error(err)
	}
	has("replaced", link("a", 1400), link("d", 0))
	err := store.Commit(ctx, client.Put(link("e", 0), link("f", 5)), client.Delete(link("a", 0)))
	if e, ok := errors.AsType[*client.Error](err); !ok || len(e.Failed) != 1 || !slices.Equal(e.Failed[0].Fields, []string{"mtu"}) {
		t.Errorf("one of three changes is invalid: %v", err)
	}
	has("nothing was written", link("a", 1400), link("d", 0))
	if got, err := store.Get(ctx, link("d", 0)); err != nil || len(got) != 1 {
		t.Errorf("one value: %v, %v", got, err)
	}
}

package olderctl

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/internal/testkit"
)

// ourKeys is the prefix that the older agentctl completes a short key with.
const ourKeys = "/vnf-agent/vpp1/"

// TestStoreCommands goes through the commands of the older agentctl that ask etcd, and not the agent:
// kvdb put, list, get and del, and import without --grpc. The agent follows them.
func TestStoreCommands(t *testing.T) {
	e := testkit.StartEtcd(t, testkit.EtcdOptions{})
	p := start(t, map[string]string{"etcd.conf": "endpoints: [" + e.Addr + "]\ninsecure-transport: true\n"})
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })

	const loop4, loop5, loop6 = "config/vpp/v2/interfaces/loop4", "config/vpp/v2/interfaces/loop5", "config/vpp/v2/interfaces/loop6"
	text := func(name string) string { return `{"name":"` + name + `","type":"SOFTWARE_LOOPBACK","enabled":true}` }
	// kvdb put
	if _, err := store.Put(t.Context(), ourKeys+loop4, text("loop4")); err != nil {
		t.Fatal(err)
	}
	p.settles(loop4, "CONFIGURED")
	// import: many lines are one transaction of etcd
	_, err = store.Txn(t.Context()).Then(clientv3.OpPut(ourKeys+loop5, text("loop5")), clientv3.OpPut(ourKeys+loop6, text("loop6"))).Commit()
	if err != nil {
		t.Fatal(err)
	}
	p.settles(loop5, "CONFIGURED")
	p.settles(loop6, "CONFIGURED")
	// kvdb list, with the agent's own keys beside config/
	found, err := store.Get(t.Context(), ourKeys+"config/", clientv3.WithPrefix())
	if err != nil || len(found.Kvs) != 3 {
		t.Errorf("the store has %v, %v", found, err)
	}
	// kvdb get, byte for byte
	one, err := store.Get(t.Context(), ourKeys+loop4)
	if err != nil || len(one.Kvs) != 1 || string(one.Kvs[0].Value) != text("loop4") {
		t.Errorf("the value is %v, %v", one, err)
	}
	// kvdb del
	if _, err := store.Delete(t.Context(), ourKeys+loop4); err != nil {
		t.Fatal(err)
	}
	p.settles(loop4, "NONEXISTENT")
}

// settles waits until a value has the state, as the command values shows it.
func (p *peer) settles(key, state string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), testkit.Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var got struct{ Value struct{ State string } }
	for {
		p.read("GET", "/scheduler/status?key="+key, "", &got)
		if got.Value.State == state {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.Fatalf("%s is %s, want %s", key, got.Value.State, state)
		}
	}
}

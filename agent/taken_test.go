package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/kvdbsync"
)

const (
	ownerKey = "/vnf-agent/vpp1/owner"
	// added is a value that is put while another has the label.
	added = "config/linux/interfaces/v2/interface/added"
)

// claim writes the key of the owner for another living agent, under a lease or without one, and returns how it ends. It
// waits until nobody has the key, unless it comes by force.
func (r *restartRig) claim(under func(context.Context, *etcd.Connector) (kvdbsync.Session, error), force bool) (end func()) {
	r.t.Helper()
	s, err := under(r.t.Context(), r.store())
	r.check(err)
	r.await("the key of the owner is free", func() bool {
		_, err := s.Get(r.t.Context(), ownerKey)
		return force || errors.Is(err, kvdbsync.ErrNotFound)
	})
	other := owner.Self("vpp1", owner.NewID()) // a process that lives
	other.Boot = "another machine"
	text, err := json.Marshal(other)
	r.check(err)
	r.check(s.Apply(r.t.Context(), []kvdbsync.Pair{{Key: ownerKey, Value: text}}))
	return func() { r.check(s.Close(r.t.Context())) }
}

// leased begins a session as agents have it.
func leased(ctx context.Context, c *etcd.Connector) (kvdbsync.Session, error) {
	return c.Session(ctx, 10*time.Second)
}

// A permanent session writes keys without a lease.
type permanent struct{ *etcd.Client }

func (permanent) Lost() <-chan struct{}         { return nil }
func (p permanent) Close(context.Context) error { return p.Client.Close() }

func unleased(ctx context.Context, c *etcd.Connector) (kvdbsync.Session, error) {
	client, err := c.Dial(ctx)
	return permanent{client}, err
}

// veth is an end of a pair.
func veth(name, peer string) string {
	return fmt.Sprintf(`{"name":%q,"type":"VETH","namespace":{"type":"NSID","reference":"red"},"veth":{"peer_if_name":%q}}`, name, peer)
}

// changeMuch changes the values of the store, without the agent: one goes, and many come.
func (r *restartRig) changeMuch() {
	r.t.Helper()
	client, err := r.store().Dial(r.t.Context())
	r.check(err)
	defer client.Close()
	apply := func(changes ...kvdbsync.Pair) { r.check(client.Apply(r.t.Context(), changes)) }
	for i := range 100 {
		apply(kvdbsync.Pair{Key: fmt.Sprintf("/vnf-agent/vpp1/config/vpp/v2/interfaces/loop-%d", i), Value: fmt.Appendf(nil, `{"name":"loop-%d","type":"SOFTWARE_LOOPBACK"}`, i)})
	}
	apply(kvdbsync.Pair{Key: "/vnf-agent/vpp1/" + portKey},
		kvdbsync.Pair{Key: "/vnf-agent/vpp1/" + added, Value: []byte(veth("added", "end"))},
		kvdbsync.Pair{Key: "/vnf-agent/vpp1/" + strings.Replace(added, "added", "end", 1), Value: []byte(veth("end", "added"))})
}

// store is that of the agent, for others.
func (r *restartRig) store() *etcd.Connector {
	var cfg etcd.Config
	cfg.Endpoints = []string{r.etcd.Endpoint}
	return etcd.New(cfg, slog.New(slog.DiscardHandler))
}

// withheld waits until the agent says that another has the label, and is not ready.
func (r *restartRig) withheld() {
	r.t.Helper()
	r.shows("withheld", "sources")
	const why = "etcd: what it says is not applied: another agent owns the label: label vpp1 belongs to the agent with pid"
	r.await("the agent says who has the label", func() bool {
		out, _ := r.ctl("status")
		return strings.Contains(strings.Join(strings.Fields(out), " "), why)
	})
	if r.ready() {
		r.t.Error("the agent is ready")
	}
}

// An agent that was paused while another took its label executes nothing of what the store says when it wakes, and does
// not take the label back. It goes on when the other one ends.
func TestTakenWhilePaused(t *testing.T) {
	r := standing(t)
	events := listen(t, "", "red", "blue")
	r.check(r.agent.Process.Signal(syscall.SIGSTOP))
	end := r.claim(leased, false)
	r.changeMuch()
	r.check(r.agent.Process.Signal(syscall.SIGCONT))
	r.withheld()
	r.said("level=WARN.*another agent has the label in this store: what comes from there is not applied")
	r.silent(events)
	end()
	r.shows("added +CONFIGURED", "values")
	r.agrees()
	r.await("the agent is ready", r.ready)
}

// An agent that is paused in the middle of a transaction, while another takes its label, begins no operation of it when it
// wakes. The others are executed when it has the label again.
func TestTakenInTheMiddle(t *testing.T) {
	const many = 1000
	r := standing(t)
	r.toVPP.Slow(20_000)
	pairs := make([]kvdbsync.Pair, many)
	for i := range pairs {
		pairs[i] = kvdbsync.Pair{Key: fmt.Sprintf("/vnf-agent/vpp1/config/vpp/v2/interfaces/many-%d", i), Value: fmt.Appendf(nil, `{"name":"many-%d","type":"SOFTWARE_LOOPBACK"}`, i)}
	}
	client, err := r.store().Dial(t.Context())
	r.check(err)
	defer client.Close()
	for part := range slices.Chunk(pairs, 100) {
		r.check(client.Apply(t.Context(), part))
	}
	made := func() int { return strings.Count(strings.Join(r.interfaces(), " "), "many-") }
	r.await("some are made", func() bool { return made() > 0 })
	r.check(r.agent.Process.Signal(syscall.SIGSTOP))
	end := r.claim(leased, false)
	r.toVPP.Slow(0)
	r.check(r.agent.Process.Signal(syscall.SIGCONT))
	r.withheld()
	r.await("what is not executed says why", func() bool {
		out, _ := r.ctl("values", "--state", "failed")
		return strings.Contains(strings.Join(strings.Fields(out), " "), "not executed: what etcd says may not be applied")
	})
	if n := made(); n > many/2 {
		t.Errorf("%d of %d interfaces were made", n, many)
	}
	end()
	r.await("all are made", func() bool { return made() == many })
	r.agrees()
}

// A claim in a store withholds that store only, and only under a lease. It ends neither a start nor a running agent.
func TestClaimOfAnother(t *testing.T) {
	r := standing(t)
	r.claim(unleased, true)()
	r.said("level=WARN.*the key names an owner without a lease that ends")
	r.changeMuch()
	r.shows("added +CONFIGURED", "values")
	r.del(added)
	r.shows("end +PENDING", "values")

	end := r.claim(leased, true)
	r.withheld()
	r.put(added, veth("added", "end"))
	r.file("other.yaml", "linuxConfig: {routes: [{dstNetwork: 10.77.0.0/16, scope: LINK, outgoingInterface: end}]}\n")
	if out, err := r.ctl("config", "update", r.dir+"/other.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := r.ctl("values"); err != nil || strings.Contains(out, "added") {
		t.Errorf("what was put is applied: %v\n%s", err, out)
	}
	r.stop(syscall.SIGKILL)
	r.launch()
	r.withheld()
	r.shows("10.77.0.0", "values") // what the program has declared
	if out, err := r.ctl("values"); err != nil || strings.Contains(out, "added") {
		t.Errorf("what the store has is applied: %v\n%s", err, out)
	}
	end()
	r.shows("added +CONFIGURED", "values")
	r.await("the agent is ready", r.ready)
}

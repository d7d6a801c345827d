package rest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// mostLines is the maximum number of lines that package health lists.
const mostLines = 20

// healthOf is the health of sources that a test changes.
type healthOf struct{ sources []orchestrator.Health }

func (h *healthOf) Health() []orchestrator.Health { return h.sources }

// expect compares state and reasons.
func (w *world) expect(h *health.Health, state wire.HealthState, missing, unapplied []string) {
	w.t.Helper()
	st := h.Status()
	if st.State != state || !slices.Equal(st.Missing, missing) || !slices.Equal(st.Unapplied, unapplied) {
		w.t.Errorf("state %d\nmissing %q\nunapplied %q\nwant %d\n%q\n%q", st.State, st.Missing, st.Unapplied, state, missing, unapplied)
	}
}

// TestReady goes through the start of an agent and what happens to it later.
func TestReady(t *testing.T) {
	inWorld(t, func(w *world) {
		sources := &healthOf{[]orchestrator.Health{{Health: kvdbsync.Health{Source: "etcd", Since: time.Now()}}}}
		h := &health.Health{Scheduler: w.sched, Sources: sources, Started: time.Now()}
		w.expect(h, wire.StateInit, []string{"etcd: its values are not known yet"}, nil)

		sources.sources[0].Err = errors.New("connection refused")
		w.expect(h, wire.StateError, []string{"etcd: its values are not known yet: connection refused"}, nil)

		sources.sources[0].Err, sources.sources[0].Complete = nil, true
		w.expect(h, wire.StateInit, []string{"the declared values have not been applied yet"}, nil)

		h.Complete()
		w.expect(h, wire.StateOK, nil, nil)

		sources.sources[0].Err = errors.New("connection refused") // its values stay in effect
		w.expect(h, wire.StateOK, nil, nil)
		if st := h.Status(); !slices.Equal(st.NonFatalPlugins, []string{"etcd"}) || st.PluginStatus["etcd"].State != wire.StateError {
			t.Errorf("a source that was lost later: %+v", st)
		}

		// A value that is invalid, and one that waits for something that nobody declares.
		_ = w.commit("", &interfaces.Interface{Name: "if3", Type: interfaces.Interface_DUMMY, Mtu: 10000}, &l3.Route{OutgoingInterface: "if9", DstNetwork: "10.9.0.0/16"})
		unapplied := []string{
			ifPrefix + "if3 is INVALID: mtu, invalid value: mtu is 10000; expected at most 9216",
			routePrefix + "10.9.0.0/16/if9 is PENDING: interface-is-up",
		}
		w.expect(h, wire.StateOK, nil, unapplied)

		w.broken[ifPrefix+"if1"] = true
		_ = w.commit("", &interfaces.Interface{Name: "if1", Type: interfaces.Interface_DUMMY})
		w.expect(h, wire.StateInit, []string{ifPrefix + "if1 is RETRYING: out of memory"}, unapplied)
		<-time.After(time.Minute)
		synctest.Wait() // the only retry has failed too
		w.expect(h, wire.StateOK, nil, append([]string{ifPrefix + "if1 is FAILED: out of memory"}, unapplied...))
	})
}

// TestReadyNeedsItsConnections has a southbound that declared values need, or do not.
func TestReadyNeedsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, sched: scheduler.New(scheduler.Options{})}
		link, err := w.sched.Connection("vpp")
		w.must(err)
		_, err = scheduler.Register(w.sched, scheduler.Descriptor[*l2.BridgeDomain, struct{}]{
			Name: "bridge", Model: models.For[*l2.BridgeDomain](), Connection: "vpp",
			Create: func(context.Context, string, *l2.BridgeDomain) (struct{}, error) { return struct{}{}, nil },
			Delete: func(context.Context, string, *l2.BridgeDomain, struct{}) error { return nil },
		})
		w.must(err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.sched.Run(ctx) }()
		connected, reached := false, false
		h := &health.Health{Scheduler: w.sched, Southbounds: func() []health.Southbound {
			return []health.Southbound{{Name: "vpp", Connected: connected, Reached: reached, Err: errors.New("no such file")}}
		}}
		// Clients of vpp-agent 3.5 wait for its names of the parts.
		older := func(agent, vpp wire.HealthState) {
			t.Helper()
			parts := h.Status().PluginStatus
			if parts["VPPAgent"].State != agent || parts["govpp"].State != vpp || parts["vpp-ifplugin"].State != vpp {
				t.Errorf("want VPPAgent %d, govpp and vpp-ifplugin %d: %+v", agent, vpp, parts)
			}
		}
		older(wire.StateInit, wire.StateInit)
		h.Complete()
		older(wire.StateOK, wire.StateInit)
		w.expect(h, wire.StateOK, nil, nil)
		if st := h.Status(); len(st.NonFatalPlugins) > 0 || st.PluginStatus["vpp"].Error != "no declared value needs it; not reached: no such file" {
			t.Errorf("nobody needs it, but: %+v", st)
		}
		w.must(w.commit("", &l2.BridgeDomain{Name: "bd"}))
		if st := h.Status(); st.State != wire.StateError || len(st.Missing) != 1 || !strings.Contains(st.Missing[0], "bridge-domain/bd is PENDING: vpp: not connected yet") {
			t.Errorf("a value needs it, but: %+v", st)
		}
		older(wire.StateOK, wire.StateError)
		connected, reached = true, true
		link.Ready()
		synctest.Wait()
		w.expect(h, wire.StateOK, nil, nil)
		older(wire.StateOK, wire.StateOK)
		_, err = w.sched.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant(models.For[*l2.BridgeDomain]().KeyOf("bd"))}})
		w.must(err)
		connected = false
		older(wire.StateOK, wire.StateError)
		w.expect(h, wire.StateOK, nil, nil)
		if st := h.Status(); !slices.Equal(st.NonFatalPlugins, []string{"vpp", "govpp", "vpp-ifplugin"}) {
			t.Errorf("nobody needs it any more, but: %+v", st)
		}
		cancel()
		w.must(<-ended)
	})
}

// TestNotReadyWhileAConnectionIsRead: after a connection is ready, its values are read back and then created, and
// that takes longer than a run keeps others waiting. The agent is ready when they are created, not before.
func TestNotReadyWhileAConnectionIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, sched: scheduler.New(scheduler.Options{})}
		link, err := w.sched.Connection("vpp")
		w.must(err)
		slow := func(ctx context.Context) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		_, err = scheduler.Register(w.sched, scheduler.Descriptor[*l2.BridgeDomain, struct{}]{
			Name: "bridge", Model: models.For[*l2.BridgeDomain](), Connection: "vpp",
			Create: func(ctx context.Context, _ string, _ *l2.BridgeDomain) (struct{}, error) {
				slow(ctx)
				return struct{}{}, nil
			},
			Delete: func(context.Context, string, *l2.BridgeDomain, struct{}) error { return nil },
			Retrieve: func(ctx context.Context, _ []scheduler.Desired[*l2.BridgeDomain]) iter.Seq2[scheduler.Found[*l2.BridgeDomain, struct{}], error] {
				return func(func(scheduler.Found[*l2.BridgeDomain, struct{}], error) bool) { slow(ctx) }
			},
		})
		w.must(err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.sched.Run(ctx) }()
		h := &health.Health{Scheduler: w.sched}
		h.Complete()
		w.must(w.commit("", &l2.BridgeDomain{Name: "bd"}))
		link.Ready()
		<-time.After(50 * time.Millisecond) // so that no look falls on the end of a second
		for after := 50 * time.Millisecond; after < 2*time.Second; after += 100 * time.Millisecond {
			if st := h.Status(); st.State == wire.StateOK {
				t.Errorf("ready after %v, with %q", after, st.Unapplied)
			}
			<-time.After(100 * time.Millisecond)
		}
		<-time.After(time.Second)
		w.expect(h, wire.StateOK, nil, nil)
		cancel()
		w.must(<-ended)
	})
}

// TestReasonsAreBounded has more values that are not applied than anybody reads.
func TestReasonsAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		h := &health.Health{Scheduler: w.sched}
		h.Complete()
		for i := range mostLines + 3 {
			w.must(w.commit("", &l3.Route{OutgoingInterface: "if9", DstNetwork: fmt.Sprintf("10.%d.0.0/16", i)}))
		}
		if got := h.Status().Unapplied; len(got) != mostLines+1 || got[mostLines] != "and 3 more" {
			t.Errorf("got %q", got)
		}
	})
}

// An agent that cannot save its state is not well: its next start would not know what it has done.
func TestUnsavedState(t *testing.T) {
	inWorld(t, func(w *world) {
		var failure error
		h := &health.Health{Scheduler: w.sched, Unsaved: func() error { return failure }}
		h.Complete()
		w.expect(h, wire.StateOK, nil, nil)
		failure = errors.New("links: no space left on device")
		w.expect(h, wire.StateError, []string{"the state cannot be saved: links: no space left on device"}, nil)
		if st := h.Status(); st.PluginStatus["state"].State != wire.StateError {
			t.Errorf("the parts are %v", st.Plugins)
		}
	})
}

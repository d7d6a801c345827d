package vpp_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// A curtain is a socket in front of VPP's, behind which its agent sees nothing while it is drawn. So the agent reacts to all
// that a hand does at once, after it.
type curtain struct {
	socket string
	drawn  sync.RWMutex // held for reading while bytes are led on
}

// hang returns a curtain in front of a socket, which ends with the test.
func hang(t *testing.T, before string) *curtain {
	t.Helper()
	c := &curtain{socket: filepath.Join(t.TempDir(), "api.sock")}
	listener, err := net.Listen("unix", c.socket)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			agent, err := listener.Accept()
			if err != nil {
				return
			}
			vpp, err := net.Dial("unix", before)
			if err != nil {
				agent.Close()
				continue
			}
			all.Go(func() { c.lead(agent, vpp) })
			all.Go(func() { c.lead(vpp, agent) })
		}
	})
	t.Cleanup(func() { listener.Close(); all.Wait() }) // the agent has ended, and its connections with it
	return c
}

// lead leads bytes on until either end closes the connection.
func (c *curtain) lead(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		c.drawn.RLock()
		_, err = to.Write(buffer[:n])
		c.drawn.RUnlock()
		if err != nil {
			return
		}
	}
}

// A hand changes a VPP behind the back of its agent, in all kinds of values: it is another agent with the same values,
// which takes some of them away or changes them, and ends.
type hand struct {
	vpp   *simulated.VPP
	known memories // of both agents
	*curtain
}

// watched starts an agent with everything, behind a curtain.
func watched(t *testing.T) (*agent, hand) {
	t.Helper()
	vpp := simulated.Start(t, simulated.Newest())
	testkit.Need(t, "a simulated VPP, which can be told what to do", vpp.Sim != nil)
	its := hand{vpp, quiet(), hang(t, vpp.Socket)}
	a := startAgentKnowing(t, its.socket, its.known)
	awaitReady(t, a)
	return a, its
}

// do has some values gone from VPP, or changed to others, and waits until the hand has ended. The agent sees all of it then.
func (h hand) do(t *testing.T, declared map[string]string, gone []string, changed map[string]string) {
	t.Helper()
	h.drawn.Lock()
	defer h.drawn.Unlock()
	other := startAgentKnowing(t, h.vpp.Socket, memories{deaths: notebook{}, applied: notebook(maps.Collect(h.known.applied.Load())), settings: notebook{}, quiet: true})
	defer other.stop()
	awaitReady(t, other)
	other.declareOnly(declared)
	after := maps.Clone(declared)
	maps.Copy(after, changed)
	for _, key := range gone {
		delete(after, key)
	}
	other.declareOnly(after)
}

// look compares with drift, and dumps all kinds, as people do who only look. It fails if VPP is asked to change anything
// meanwhile, while the agent itself does nothing.
func (a *agent) look(vpp *simulated.VPP) *drift.Report {
	a.Helper()
	for {
		before := len(a.sched.History())
		vpp.Counts()
		report, err := drift.Check(context.Background(), a.sched)
		if err != nil {
			a.Fatal(err)
		}
		for _, err := range report.Errors {
			a.Error(err)
		}
		for _, d := range inspect.Descriptors(a.sched) {
			if d.Retrieves {
				if _, err := inspect.Dump(context.Background(), a.sched, d.Name); err != nil {
					a.Errorf("%s: %v", d.Name, err)
				}
			}
		}
		if counts := vpp.Counts(); len(a.sched.History()) == before {
			expectNoWrites(a.T, counts)
			return report
		}
	}
}

// rest waits until the agent has dealt with all that VPP tells by itself: what VPP has told before an answer has arrived with
// it, and the agent then does nothing by itself, several times in a row.
func (a *agent) rest() {
	a.Helper()
	const enough = 5
	rests := 0
	until(a.T, func() bool {
		before := len(a.sched.History())
		_, err := a.states.Read(a.Context())
		if err == nil {
			_, err = a.sched.Commit(a.Context(), scheduler.Txn{})
		}
		busy := slices.ContainsFunc(a.sched.Statuses("config/"), func(st *scheduler.Status) bool { return st.State == scheduler.Retrying })
		if rests++; err != nil || busy || len(a.sched.History()) > before+1 {
			rests = 0
		}
		return rests == enough
	}, func() string { return "the agent does not come to rest" })
}

// everythingBy returns everything by key.
func everythingBy(t *testing.T) map[string]string {
	t.Helper()
	all, out := everything(t), map[string]string{}
	for i := 0; i < len(all); i += 2 {
		out[all[i]] = all[i+1]
	}
	return out
}

// otherSettings are values of many kinds with settings that a hand gives them.
func otherSettings(declared map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range declared {
		for old, new := range map[string]string{
			`"mtu":1500`: `"mtu":1400`, `10.1.0.1/24`: `10.1.0.77/24`, `02:00:00:00:00:09`: `02:00:00:00:00:77`, `"priority":100`: `"priority":90`,
			`"timeout":2`: `"timeout":3`, `"active_timer":10`: `"active_timer":11`, `"weight":2`: `"weight":3`, `"enabled":true`: `"enabled":false`, `10.9.0.7`: `10.9.0.8`,
		} {
			if changed := strings.Replace(value, old, new, 1); changed != value {
				out[key] = changed
				break
			}
		}
	}
	return out
}

// drawHand draws what a hand does. It leaves policies of ABF alone: VPP may end when one is read that others have changed.
func drawHand(rt *rapid.T, declared map[string]string) (gone []string, changed map[string]string) {
	declared = maps.Clone(declared)
	maps.DeleteFunc(declared, func(key, _ string) bool { return strings.HasPrefix(key, "config/vpp/abfs/") })
	keys := slices.Sorted(maps.Keys(declared))
	gone = rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 4, rapid.ID[string]).Draw(rt, "gone")
	all := otherSettings(declared)
	changed = map[string]string{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(all))), 0, 3, rapid.ID[string]).Draw(rt, "changed") {
		changed[key] = all[key]
	}
	return gone, changed
}

// done returns the operations of a transaction, without those that change nothing.
func done(record *scheduler.Record) (out []string) {
	for _, op := range record.Executed.All() {
		if !op.Noop {
			out = append(out, fmt.Sprint(op.Verb, " ", op.Key))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Whoever only looks changes nothing: of two agents, one is looked at at random moments. Hands change both VPPs alike. Then
// both agents do the same, and both VPPs have the same.
func TestLooksChangeNothing(t *testing.T) {
	looked, its := watched(t)
	other, others := watched(t)
	declared := everythingBy(t)
	draw.Few(t, 12, func(rt *rapid.T) {
		looked.declareOnly(declared)
		other.declareOnly(declared)
		look := func(when string) {
			if rapid.Bool().Draw(rt, when) {
				looked.look(its.vpp)
			}
		}
		look("before")
		for range rapid.IntRange(1, 2).Draw(rt, "hands") {
			gone, changed := drawHand(rt, declared)
			its.do(t, declared, gone, changed)
			others.do(t, declared, gone, changed)
			looked.rest()
			other.rest()
			look("between")
		}
		look("after")
		mine, theirs := looked.resyncs(), other.resyncs()
		if missing, more := lists.Without(theirs, mine), lists.Without(mine, theirs); len(missing)+len(more) > 0 {
			rt.Errorf("the agent that was looked at does not\n%s\nand does\n%s", strings.Join(missing, "\n"), strings.Join(more, "\n"))
		}
		if has, want := pages(its.vpp), pages(others.vpp); has != want {
			rt.Errorf("its VPP has\n%s\nwant\n%s", has, want)
		}
	})
}

// resyncs reads everything back, and returns what that does.
func (a *agent) resyncs() []string {
	a.Helper()
	record, err := a.sched.Commit(a.Context(), scheduler.Txn{Refresh: true})
	if err != nil {
		a.Fatal(err)
	}
	return done(record)
}

// Whatever a resync would do, drift shows, and nothing else, for all kinds. What depends on something that differs goes and
// comes with it.
func TestDriftIsWhatAResyncDoes(t *testing.T) {
	a, its := watched(t)
	declared := everythingBy(t)
	draw.Few(t, 12, func(rt *rapid.T) {
		a.declareOnly(declared)
		gone, changed := drawHand(rt, declared)
		its.do(t, declared, gone, changed)
		for {
			a.rest()
			report := a.look(its.vpp)
			before := len(a.sched.History())
			record, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true})
			if err != nil {
				rt.Fatal(err)
			}
			if len(a.sched.History()) > before+1 {
				continue // the agent has done something by itself between the two
			}
			a.compare(rt, report, record)
			break
		}
		if again := a.look(its.vpp); len(again.Values) > 0 {
			rt.Errorf("after the resync drift shows %v", again.Values)
		}
	})
}

// compare compares what drift has shown with the resync that followed it.
func (a *agent) compare(rt *rapid.T, report *drift.Report, record *scheduler.Record) {
	var shown, repaired []string
	for _, v := range report.Values {
		shown = append(shown, v.Key)
	}
	for _, op := range record.Executed.All() {
		if !op.Noop {
			repaired = append(repaired, op.Key)
		}
	}
	slices.Sort(repaired)
	repaired = slices.Compact(repaired)
	if missing := lists.Without(shown, repaired); len(missing) > 0 {
		rt.Errorf("drift shows, and the resync does not repair:\n%s", strings.Join(missing, "\n"))
	}
	for _, key := range lists.Without(repaired, shown) {
		if !a.follows(key, repaired) {
			rt.Errorf("the resync repairs %s, which drift does not show among\n%s", key, strings.Join(shown, "\n"))
		}
	}
}

// follows reports whether a value is derived from one of the others, or depends on it: it goes and comes with it.
func (a *agent) follows(key string, others []string) bool {
	st, ok := a.sched.Status(key)
	if !ok {
		return false
	}
	others = slices.DeleteFunc(slices.Clone(others), func(other string) bool { return other == key })
	depends := func(d scheduler.Dependency) bool { return slices.ContainsFunc(others, d.MetBy) }
	return st.Base != "" && slices.Contains(others, st.Base) || slices.ContainsFunc(inspect.Message(a.sched, key, st.Normalized()).Dependencies, depends)
}

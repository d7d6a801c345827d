package scheduler_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// A life is what happens to a scheduler and its southbound: transactions,
// failures, surprises, lost connections, restarts.
type life struct {
	t      *testing.T
	net    *fakeNet
	sched  *scheduler.Scheduler
	group  *scheduler.Connection
	stop   func()
	memory notebook
	intent        // the newest
	before intent // without the staged changes
	staged []scheduler.Change
	alone  bool // nothing has changed in the southbound by itself
	asks   bool // somebody must ask for another attempt: an error was final, or a loss was unseen
}

// An intent is what is wanted.
type intent struct {
	wanted map[string]step // by name
	bad    map[string]bool // names whose newest intent is invalid
}

func (i intent) clone() intent { return intent{maps.Clone(i.wanted), maps.Clone(i.bad)} }

// A step is one thing that happens.
type step struct {
	what string
	name string
	verb string // the name whose verbs break or are mended
	args []string
}

// values are what the steps want, by name; some cannot stand without others.
var lifeValues = map[string][][]string{
	"if1":                   {{}, {"mtu=1"}, {"addr=10.0.0.1/24"}, {"peer=if2"}, {"tap"}, {"addr=10.0.0.2/24", "addr=10.0.0.1/24"}, {"addr=10.0.0.9/32"}},
	"if2":                   {{}, {"peer=if1"}, {"peer=if3"}, {"addr=10.0.0.3/24"}},
	"if3":                   {{"peer=if1"}, {"peer=if2"}, {"peer=if3"}, {"mtu=2"}},
	"route/10.2.0.0/16/if1": {{}, {"gw"}},
	"route/10.3.0.0/16/if2": {{}, {"gw"}},
	"route/10.4.0.0/16/if3": {{}},
}

func anyStep(t *rapid.T) step {
	names := slices.Sorted(maps.Keys(lifeValues))
	s := step{
		what: rapid.SampledFrom([]string{
			"want", "want", "want", "want", "unwant", "commit", "commit", "commit", "atomic", "planned", "invalid", "break", "terminal",
			"half", "half", "hang", "hang", "hang", "slow", "slow", "slow", "mend", "submit", "submit", "moment", "moment",
			"slow reads", "slow reads", "hung reads", "read", "vanish", "vanish unseen", "refresh", "lost", "wiped", "ready", "restart", "sleep",
		}).Draw(t, "what"),
		name: rapid.SampledFrom(names).Draw(t, "name"),
	}
	s.verb = rapid.SampledFrom(append(names, "linux/interface/if1/address/10.0.0.1/24", "linux/interface/if1/address/10.0.0.2/24")).Draw(t, "verb")
	s.args = rapid.SampledFrom(lifeValues[s.name]).Draw(t, "args")
	return s
}

// TestLife drives a scheduler with random steps. When the dust has settled, what
// stands and every status is as if there had only been the last intent.
func TestLife(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(anyStep), 1, 40).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			l := &life{t: t, memory: notebook{}, intent: intent{map[string]step{}, map[string]bool{}}, alone: true}
			l.net = newFakeNet()
			l.begin()
			for _, s := range steps {
				l.step(s)
			}
			l.mendAll()
			l.resync(rt)
			got := picture(l.net, l.sched)
			if l.alone {
				l.replay(rt)
			}
			l.stop()
			if want := l.fresh(); got != want {
				rt.Errorf("after %v\n%s\nwanted\n%s", steps, got, want)
			}
		})
	})
}

// TestLateMemberOfACycle has the peer of if3 created late, when if3 wants another one, which does not exist.
func TestLateMemberOfACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t, memory: notebook{}, intent: intent{map[string]step{}, map[string]bool{}}, alone: true}
		l.net = newFakeNet()
		l.begin()
		for _, s := range []step{
			{what: "want", name: "if3", args: []string{"peer=if2"}}, {what: "commit"},
			{what: "want", name: "if2", args: []string{"peer=if3"}}, {what: "hang", verb: "if2"}, {what: "commit"}, {what: "want", name: "if3", args: []string{"peer=if1"}}, {what: "commit"},
		} {
			l.step(s)
		}
		l.mendAll()
		got := picture(l.net, l.sched)
		l.stop()
		if want := l.fresh(); got != want {
			t.Errorf("there is\n%s\nwanted\n%s", got, want)
		}
	})
}

func newFakeNet() *fakeNet {
	f := &fakeNet{out: &bytes.Buffer{}, stands: map[string]proto.Message{}, foreign: map[string]bool{}, broken: map[string]string{}}
	f.set([]string{"foreign", "eth0"})
	return f
}

// begin starts a scheduler that is connected and knows all intent.
func (l *life) begin() {
	l.sched = scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: l.memory})
	l.group = group(l.t, l.sched, "net")
	l.net.descriptors(l.t, l.sched)
	l.stop = begin(l.t, l.sched)
	l.group.Ready()
	txn := scheduler.Txn{Refresh: true, Replace: true}
	for _, name := range slices.Sorted(maps.Keys(l.wanted)) {
		if !l.bad[name] {
			txn.Changes = append(txn.Changes, l.change(l.wanted[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.bad)) { // what was valid before nobody knows any more
		txn.Changes = append(txn.Changes, scheduler.Change{Key: key(name), Err: errInvalid})
	}
	_, _ = l.sched.Commit(l.t.Context(), txn) // what fails is tried again
	l.committed()
}

func (l *life) change(s step) scheduler.Change {
	v, err := l.sched.Value(key(s.name), message(s.name, s.args))
	must(l.t, err)
	return v.Change()
}

func (l *life) step(s step) {
	switch s.what {
	case "want":
		l.wanted[s.name] = s
		delete(l.bad, s.name)
		l.stage(l.change(s))
	case "unwant":
		delete(l.wanted, s.name)
		delete(l.bad, s.name)
		l.stage(scheduler.Unwant(key(s.name)))
	case "commit", "atomic", "planned":
		l.commit(s.what)
	case "invalid":
		l.bad[s.name] = true
		l.stage(l.refused(s.name))
	case "break":
		l.net.set([]string{"break", s.verb})
	case "submit":
		must(l.t, l.sched.Submit(l.t.Context(), scheduler.Txn{Changes: l.staged}))
		l.committed()
	case "moment": // what is slow has not ended
		<-time.After(slowness / 3)
	case "slow reads":
		l.net.set([]string{"break", "retrieve", "slow"})
	case "hung reads":
		l.net.set([]string{"break", "retrieve", "hang"})
	case "read":
		l.net.set([]string{"mend", "retrieve"})
	case "terminal", "half", "hang", "slow":
		l.alone = l.alone && s.what != "half"
		l.asks = l.asks || s.what == "terminal"
		l.net.set([]string{"break", s.verb, s.what})
	case "mend":
		l.net.set([]string{"mend", s.verb})
	case "vanish", "vanish unseen":
		l.alone = false
		l.net.set([]string{"vanish", s.name})
		if s.what == "vanish" {
			l.sched.Observe(scheduler.Observed{Key: key(s.name)})
		} else {
			l.asks = true
		}
	case "refresh":
		must(l.t, l.sched.Refresh())
	case "lost":
		l.alone = false
		l.group.Lost(errors.New("lost"))
	case "wiped":
		l.alone = false
		l.wipe()
		l.group.Lost(errors.New("restarted"))
	case "ready":
		l.group.Ready()
	case "restart":
		l.alone = false
		l.commit("commit")
		l.stop()
		l.net.kill()
		synctest.Wait()
		l.begin()
	case "sleep":
		<-time.After(time.Minute)
	}
	synctest.Wait()
}

var errInvalid = fmt.Errorf("%w: of its time", scheduler.ErrInvalid)

// refused is intent that cannot be followed, for a key with the last valid one.
func (l *life) refused(name string) scheduler.Change {
	if s, ok := l.wanted[name]; ok {
		return scheduler.Change{Key: key(name), Value: l.change(s).Value, Err: errInvalid}
	}
	return scheduler.Change{Key: key(name), Err: errInvalid}
}

// stage adds a change to the transaction to come; the newest of a key counts.
func (l *life) stage(c scheduler.Change) {
	l.staged = slices.DeleteFunc(l.staged, func(o scheduler.Change) bool { return o.Key == c.Key })
	l.staged = append(l.staged, c)
}

func (l *life) commit(how string) {
	txn := scheduler.Txn{Changes: l.staged, Revert: how == "atomic", Simulate: how == "planned"}
	_, err := l.sched.Commit(l.t.Context(), txn)
	if err != nil && txn.Revert {
		l.intent = l.before
	}
	l.committed()
}

// committed notes that no changes are staged.
func (l *life) committed() { l.before, l.staged = l.intent.clone(), nil }

// wipe empties the southbound, but for what is not ours.
func (l *life) wipe() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	maps.DeleteFunc(l.net.stands, func(key string, _ proto.Message) bool { return !l.net.foreign[key] })
}

// mendAll mends everything and waits until nothing is left to be tried.
func (l *life) mendAll() {
	l.net.mendAll()
	synctest.Wait()
	l.group.Ready()
	for _, name := range slices.Sorted(maps.Keys(l.bad)) {
		if s, ok := l.wanted[name]; ok {
			l.stage(l.change(s))
		} else {
			l.stage(scheduler.Unwant(key(name)))
		}
	}
	clear(l.bad)
	l.commit("commit")
	if l.asks {
		must(l.t, l.sched.Refresh())
		_, _ = l.sched.Retry(l.t.Context()) // values that fail again are retried
	}
	<-time.After(10 * time.Minute)
	synctest.Wait()
}

// resync reads back what is in sync, and expects that this does not show anywhere.
func (l *life) resync(rt *rapid.T) {
	before, verbs := shown(l.sched), l.net.log()
	w := l.sched.Watch("")
	defer w.Close()
	w.Take() // the present statuses
	r, err := l.sched.Commit(l.t.Context(), scheduler.Txn{Refresh: true})
	must(l.t, err)
	for _, op := range r.Executed.All() {
		rt.Errorf("a resync in sync: %s %s [%s] %s -> %s", op.Verb, short(op.Key), strings.Join(txnlog.Flags(&op), " "), op.OldState, op.NewState)
	}
	if news := w.Take(); len(news) > 0 {
		rt.Errorf("a resync in sync publishes %s as %s, and %d more", short(news[0].Key), news[0].State, len(news)-1)
	}
	if after := shown(l.sched); after != before {
		rt.Errorf("a resync in sync changes\n%s\ninto\n%s", before, after)
	}
	if done := strings.TrimPrefix(l.net.log(), verbs); done != "" {
		rt.Errorf("a resync in sync calls verbs:\n%s", done)
	}
}

// shown is all that people can see of values.
func shown(s *scheduler.Scheduler) string {
	var b strings.Builder
	for _, st := range s.Statuses("") {
		fmt.Fprintf(&b, "%s %s %s %v %q %v %v %v %v\n", short(st.Key), st.State, st.Last, st.Err, st.Details, st.Since, st.Desired, st.Actual, st.Meta)
	}
	return b.String()
}

// fresh is the picture of a scheduler that has only ever known what is wanted now.
func (l *life) fresh() string {
	l.net = newFakeNet()
	l.memory = notebook{}
	l.begin()
	defer l.stop()
	l.mendAll()
	return picture(l.net, l.sched)
}

// inOrder returns the operations with a verb of all records in the order in which they began. The
// records alone do not tell it, because transactions overlap.
func inOrder(history []*scheduler.Record) []scheduler.Operation {
	var ops []scheduler.Operation
	for _, r := range history {
		for _, op := range r.Executed.All() {
			if !op.Noop {
				ops = append(ops, op)
			}
		}
	}
	slices.SortStableFunc(ops, func(a, b scheduler.Operation) int { return cmp.Compare(a.Order, b.Order) })
	return ops
}

// replay follows the history, and must end with what stands.
func (l *life) replay(rt *rapid.T) {
	stands := map[string]bool{key("eth0"): true}
	for _, op := range inOrder(l.sched.History()) {
		switch {
		case op.NewErr != nil:
		case op.New == nil:
			delete(stands, op.Key)
		default:
			stands[op.Key] = true
		}
	}
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	got := slices.Sorted(maps.Keys(stands))
	if want := slices.Sorted(maps.Keys(l.net.stands)); !slices.Equal(got, want) {
		rt.Errorf("the history says that %q stand, but it is %q", got, want)
	}
}

package orchestrator_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// A notebook is a Memory that counts, and may be stale or refuse.
type notebook struct {
	keys  map[string][]byte
	saved int // keys that were saved
	stale error
	full  error         // why Record refuses
	saves chan<- string // nil, or is sent "saved" whenever something is
}

func newNotebook() *notebook { return &notebook{keys: map[string][]byte{}} }

func (n *notebook) Load() iter.Seq2[string, []byte] { return maps.All(maps.Clone(n.keys)) }

func (n *notebook) Stale() error { return n.stale }

func (n *notebook) Renew() error { n.stale = nil; return nil }

func (n *notebook) Record(changes iter.Seq2[string, []byte]) error {
	if n.full != nil {
		return n.full
	}
	return n.Save(changes)
}

func (n *notebook) Save(changes iter.Seq2[string, []byte]) error {
	before := n.saved
	for key, value := range changes {
		n.saved++
		n.keys[key] = value
	}
	maps.DeleteFunc(n.keys, func(_ string, v []byte) bool { return v == nil })
	if n.saves != nil && n.saved > before {
		n.saves <- "saved"
	}
	return nil
}

var _ orchestrator.Memory = (*notebook)(nil)

// listed is a complete listing.
func listed(text string) kvdbsync.Change {
	return kvdbsync.Change{Synced: true, Resynced: true, Events: events(text)}
}

// A step gives a layer a change, unless it has no name, lets some time pass, and says
// what stands then.
type step struct {
	layer  string
	change kvdbsync.Change
	after  time.Duration
	stands string
}

func (r *rig) steps(t *testing.T, steps []step) {
	t.Helper()
	for i, s := range steps {
		if s.layer != "" {
			s.change.Events = slices.Clone(s.change.Events)
			r.give(s.layer, s.change)
		}
		<-time.After(s.after)
		synctest.Wait()
		if got := r.standing(); got != s.stands {
			t.Errorf("step %d: stands %q, want %q", i, got, s.stands)
		}
	}
}

const second = time.Second

// TestRestarts lets an agent know two stores, and starts it again.
func TestRestarts(t *testing.T) {
	bad := []error{errors.New("routes.yaml: cannot be read")}
	hidden := listed("if5=5")
	hidden.Problems = bad
	mended := kvdbsync.Change{Synced: true, Resynced: true, Events: events("if1=1")}
	tests := []struct {
		what  string
		steps []step
	}{
		{"with all stores down, what they last declared is there within a second", []step{
			{after: second, stands: "if1=1 if2=2 if3=3 old=1"},
		}},
		{"a store that comes back is followed; nothing goes before all are there", []step{
			{after: second, stands: "if1=1 if2=2 if3=3 old=1"},
			{"files", listed("if1=9"), second, "if1=9 if2=2 if3=3 old=1"},
			{"etcd", listed("if3=3 if4=4"), 0, "if1=9 if3=3 if4=4"},
		}},
		{"stores that are there at once are followed alone", []step{
			{"files", listed("if1=1"), 0, "old=1"},
			{"etcd", listed("if4=4"), 0, "if1=1 if4=4"},
		}},
		{"one that is there and one that is not", []step{
			{"files", listed("if1=7"), second, "if1=7 if3=3 old=1"},
			{"etcd", listed("if3=8"), 0, "if1=7 if3=8"},
		}},
		{"a store that is empty is doubted", []step{
			{"files", listed("if1=1"), 0, "old=1"},
			{"etcd", listed(""), 9 * second, "if1=1 if3=3"},
			{"etcd", listed(""), second, "if1=1 if3=3"},
			{"etcd", listed(""), 0, "if1=1"},
		}},
		{"even when it comes late", []step{
			{after: second, stands: "if1=1 if2=2 if3=3 old=1"},
			{"etcd", listed(""), 0, "if1=1 if2=2 if3=3 old=1"},
			{"files", listed("if1=1"), 10 * second, "if1=1 if3=3"},
			{"etcd", listed(""), 0, "if1=1"},
		}},
		{"what a problem may hide stays", []step{
			{"etcd", listed("if3=3"), 0, "old=1"},
			{"files", hidden, 0, "if1=1 if2=2 if3=3 if5=5 old=1"},
			{"files", mended, 0, "if1=1 if3=3 if5=5"},
		}},
		{"changes before the first listing count", []step{
			{after: second, stands: "if1=1 if2=2 if3=3 old=1"},
			{"etcd", kvdbsync.Change{Events: events("if3=7")}, 0, "if1=1 if2=2 if3=7 old=1"},
			{"etcd", kvdbsync.Change{Synced: true}, 0, "if1=1 if2=2 if3=7 old=1"},
			{"files", listed("if1=1"), 0, "if1=1 if3=7"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			layers := map[string]int{"files": 2, "etcd": 1}
			memory := newNotebook()
			life(t, layers, "", memory, func(t *testing.T, r *rig) {
				r.give("files", listed("if1=1 if2=2"))
				r.give("etcd", listed("if1=5 if3=3"))
			})
			life(t, layers, "old=1", memory, func(t *testing.T, r *rig) { r.steps(t, tt.steps) })
		})
	}
}

// A removal that waits for the other sources is not made sooner by a bad value, nor by
// the end of one; and made once they are there, bad value or not.
func TestABadValueUnderAKeyWhoseRemovalWaits(t *testing.T) {
	bad := kvdbsync.Change{Synced: true, Resynced: true, Problems: []error{errors.New("a.yaml: cannot be read")}}
	for what, steps := range map[string][]step{
		"all well":  {{"etcd", listed(""), 0, "if1=1"}},
		"a problem": {{"etcd", bad, 0, "if1=1"}, {"etcd", listed(""), 0, "if1=1"}},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, map[string]int{"files": 2, "etcd": 1}, "if1=1 if2=2", func(t *testing.T, r *rig) {
				r.steps(t, append([]step{
					{"files", listed("if1=99999 if2={ if3=3"), second, "if1=1 if2=2 if3=3"},
					{"files", kvdbsync.Change{Events: events("if2= if3=")}, 0, "if1=1 if2=2 if3=3"},
					{"files", kvdbsync.Change{Events: events("if3=99999")}, 0, "if1=1 if2=2 if3=3"},
				}, steps...))
			})
		})
	}
}

// A removal that waited for the other sources is made when they are there. Its value does not come
// back with the end of a later request that fails.
func TestAnAttemptFailsAfterARemovalThatWaited(t *testing.T) {
	memory := newNotebook()
	life(t, map[string]int{"files": 2, "etcd": 1}, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{
			{"files", listed("if1=1"), second, "if1=1"},
			{"files", kvdbsync.Change{Events: events("if1=")}, 0, "if1=1"},
			{"etcd", listed("if2=2"), 0, "if2=2"},
		})
		memory.full = errors.New("disk full")
		r.declare(t, []declaring{{layer: "a", revert: true, values: "if1=5", stands: "if2=2", layers: "files etcd", err: "disk full"}})
	})
}

func TestWhatIsRememberedIsSaidToBe(t *testing.T) {
	memory := newNotebook()
	life(t, map[string]int{"etcd": 1, "files": 2}, "", memory, func(_ *testing.T, r *rig) { r.give("etcd", listed("if1=1")) })
	life(t, map[string]int{"etcd": 1, "files": 2}, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{after: second, stands: "if1=1"}})
		if got, want := r.sched.History()[0].Description, "not all sources are complete yet; using keys saved before the restart: etcd"; got != want {
			t.Errorf("the transaction is called %q, want %q", got, want)
		}
		if want := `level=WARN msg="using keys saved before the restart" source=etcd keys=1`; !strings.Contains(r.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, &r.log)
		}
	})
}

func TestWhatWasLastValidStaysInForceAcrossRestarts(t *testing.T) {
	layers := map[string]int{"etcd": 1}
	broken := kvdbsync.Event{Key: prefix + "if3", Err: errors.New("line 7: no mapping")}
	memory := newNotebook()
	life(t, layers, "", memory, func(_ *testing.T, r *rig) {
		r.give("etcd", listed("if1=1 if2=2 if3=3"))
		r.give("etcd", kvdbsync.Change{Events: append(events("if1=99999 if2={"), broken)})
	})
	states := func(t *testing.T, r *rig, want map[string]string) {
		t.Helper()
		for name, word := range want {
			st, _ := r.sched.Status(prefix + name)
			if st == nil || st.Err == nil && word != "" || st.Err != nil && (word == "" || !strings.Contains(st.Err.Error(), word)) {
				t.Errorf("%s: %+v, want %q", name, st, word)
			}
		}
	}
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{after: second, stands: "if1=1 if2=2 if3=3"}})
		states(t, r, map[string]string{"if1": "at most 9216", "if2": "JSON", "if3": "line 7"})
	})
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		c := listed("if1=88888 if2={")
		c.Events = append(c.Events, broken)
		r.give("etcd", c)
		r.steps(t, []step{{stands: "if1=1 if2=2 if3=3"}})
		r.give("etcd", kvdbsync.Change{Events: events("if1=7 if3=")})
		states(t, r, map[string]string{"if1": "", "if2": "JSON"})
	})
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{after: second, stands: "if1=7 if2=2"}})
		states(t, r, map[string]string{"if1": "", "if2": "JSON"})
	})
}

// A source that reads its store, or connects for the first time, may be there at any moment,
// so its memory can wait.
func TestASourceThatMayBeThereIsWaitedFor(t *testing.T) {
	layers := map[string]int{"etcd": 1, "files": 1}
	memory := newNotebook()
	life(t, layers, "", memory, func(_ *testing.T, r *rig) { r.give("etcd", listed("if1=1 if2=2")) })
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.inputs["etcd"].health.Store(int32(kvdbsync.Syncing))
		r.steps(t, []step{
			{"files", listed("if5=5"), second, "if5=5"},
			{"etcd", listed("if1=1"), second, "if1=1 if5=5"},
		})
	})
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.inputs["etcd"].trying.Store(true)
		r.steps(t, []step{
			{"files", listed("if5=5"), second, "if5=5"},
			{"etcd", listed("if1=1"), second, "if1=1 if5=5"},
		})
	})
	for _, fate := range []kvdbsync.State{kvdbsync.Connecting, kvdbsync.Syncing} {
		life(t, layers, "", memory, func(t *testing.T, r *rig) {
			r.inputs["etcd"].health.Store(int32(kvdbsync.Syncing))
			<-time.After(2 * second)
			r.inputs["etcd"].health.Store(int32(fate))
			r.steps(t, []step{{after: 2 * second, stands: "if1=1 if5=5"}})
		})
	}
}

// Of a source that may not be applied, what it said before the restart is not applied either, however long that lasts.
func TestWhatIsWithheldIsNotRemembered(t *testing.T) {
	layers := map[string]int{"etcd": 1, "files": 1}
	memory := newNotebook()
	life(t, layers, "", memory, func(_ *testing.T, r *rig) { r.give("etcd", listed("if1=1 if2=2")) })
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.inputs["etcd"].health.Store(int32(kvdbsync.Withheld))
		r.steps(t, []step{
			{"files", listed("if5=5"), second, "if5=5"},
			{after: 1000 * second, stands: "if5=5"},
		})
		r.inputs["etcd"].health.Store(int32(kvdbsync.Synced))
		r.steps(t, []step{{"etcd", listed("if1=1"), second, "if1=1 if5=5"}})
	})
}

// While another agent has the label in a store, what other sources remove goes. As long as it is not known who has it, removals
// wait, as for a store that is away.
func TestRemovalsBesideAStoreOfAnother(t *testing.T) {
	layers := map[string]int{"etcd": 1, "files": 2}
	life(t, layers, "if9=9", newNotebook(), func(t *testing.T, r *rig) {
		etcd := r.inputs["etcd"]
		etcd.health.Store(int32(kvdbsync.Withheld))
		r.steps(t, []step{
			{"files", listed("if1=1 if2=2 if3=3"), second, "if1=1 if2=2 if3=3 if9=9"},
			{"files", kvdbsync.Change{Events: events("if2=")}, second, "if1=1 if2=2 if3=3 if9=9"},
		})
		etcd.withheld.Store(true)
		etcd.wake()
		r.steps(t, []step{
			{after: second, stands: "if1=1 if3=3 if9=9"},
			{"files", kvdbsync.Change{Events: events("if3=")}, second, "if1=1 if9=9"},
		})
		etcd.health.Store(int32(kvdbsync.Synced))
		etcd.allow()
		r.steps(t, []step{{"etcd", listed("if3=33"), second, "if1=1 if3=33"}})
	})
}

// Of a store that is away nobody knows whether it may be applied. What it said before the restart is.
func TestWhatIsRememberedOfAStoreThatIsAway(t *testing.T) {
	for _, other := range []string{"", "files"} { // beside it
		layers := map[string]int{"etcd": 1}
		if other != "" {
			layers[other] = 1
		}
		memory := newNotebook()
		life(t, layers, "", memory, func(_ *testing.T, r *rig) { r.give("etcd", listed("if1=1 if2=2")) })
		life(t, layers, "", memory, func(t *testing.T, r *rig) {
			r.inputs["etcd"].withheld.Store(true)
			if other != "" {
				r.give(other, listed(""))
			}
			r.steps(t, []step{{after: 10 * second, stands: "if1=1 if2=2"}})
			r.inputs["etcd"].allow()
			r.steps(t, []step{{"etcd", listed("if1=1"), second, "if1=1"}})
		})
	}
}

// What is as remembered is not written, nor handed on, again.
func TestWhatIsAsRememberedCostsNothing(t *testing.T) {
	layers := map[string]int{"etcd": 1, "files": 2}
	memory := newNotebook()
	life(t, layers, "", memory, func(_ *testing.T, r *rig) { r.give("etcd", listed("if1=1 if2=99999")) })
	memory.saved = 0
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{after: second, stands: "if1=1"}})
		r.give("etcd", listed("if1=1 if2=99999"))
		if n := len(r.sched.History()); n != 1 {
			t.Errorf("%d transactions", n)
		}
	})
	if memory.saved != 0 {
		t.Errorf("%d keys saved", memory.saved)
	}
}

// What a source declares is remembered before it is applied, and what a program declares
// before that is told. A kill in between so brings back nothing old.
func TestWhatIsAppliedWasRememberedBefore(t *testing.T) {
	memory := newNotebook()
	steps := make(chan string, 100)
	memory.saves = steps
	life(t, map[string]int{"etcd": 1, "grpc": 2}, "", memory, func(t *testing.T, r *rig) {
		r.told = steps
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for len(steps) > 0 {
				got = append(got, <-steps)
			}
			slices.Sort(got[min(1, len(got)):]) // verbs of several values run concurrently
			if strings.Join(got, " ") != want {
				t.Errorf("the order is %v, want %s", got, want)
			}
		}
		r.give("etcd", listed("if1=1 if2=2"))
		expect("saved if1=1 if2=2")
		r.give("etcd", kvdbsync.Change{Events: events("if1=5")})
		expect("saved if1=5")
		r.give("etcd", kvdbsync.Change{Events: events("if2=")})
		expect("saved if2=")
		if _, err := r.local.Apply(t.Context(), []kvdbsync.Pair{{Key: prefix + "if1", Value: []byte(`{"name":"if1","mtu":9}`)}}); err != nil {
			t.Error(err)
		}
		expect("saved if1=9")
	})
}

// A stale memory may be older than what was applied: nothing of a source is taken from it, and
// nothing is removed until the source is there. What programs declared is taken, as it cannot
// be stale.
func TestAStaleMemory(t *testing.T) {
	layers := map[string]int{"etcd": 1, "grpc": 2}
	memory := newNotebook()
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1 if2=2"))
		if _, err := r.local.Apply(t.Context(), []kvdbsync.Pair{{Key: prefix + "if8", Value: []byte(`{"name":"if8","mtu":8}`)}}); err != nil {
			t.Error(err)
		}
	})
	memory.stale = errors.New("the disk was full")
	life(t, layers, "if1=7 if3=3 if8=8", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{
			{after: 5 * second, stands: "if1=7 if3=3 if8=8"},
			{"etcd", listed("if1=6"), 0, "if1=6 if8=8"},
		})
		if want := `level=WARN msg="not using keys saved before the restart`; !strings.Contains(r.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, &r.log)
		}
	})
	if memory.stale != nil {
		t.Error("the memory is still stale")
	}
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{after: 5 * second, stands: "if1=6 if8=8"}})
	})
}

// A request that cannot be recorded is refused, and changes nothing. Stores are followed.
func TestARequestThatCannotBeRecorded(t *testing.T) {
	memory := newNotebook()
	full := errors.New("no space left on device")
	memory.full = full
	life(t, map[string]int{"etcd": 1, "grpc": 2}, "", memory, func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1"))
		for _, do := range []func(context.Context, []kvdbsync.Pair) (*scheduler.Record, error){r.local.Apply, r.local.Replace} {
			if _, err := do(t.Context(), []kvdbsync.Pair{{Key: prefix + "if1", Value: []byte(`{"name":"if1","mtu":9}`)}}); !errors.Is(err, orchestrator.ErrNotRecorded) || !errors.Is(err, full) {
				t.Errorf("the answer is %v", err)
			}
		}
		r.steps(t, []step{{stands: "if1=1"}})
		memory.full = nil
		if _, err := r.local.Apply(t.Context(), []kvdbsync.Pair{{Key: prefix + "if1", Value: []byte(`{"name":"if1","mtu":9}`)}}); err != nil {
			t.Error(err)
		}
		r.steps(t, []step{{stands: "if1=9"}})
	})
}

// A value that an older agent has refused, and this one accepts, is not newer than what follows it.
func TestARefusedValueIsAcceptedLater(t *testing.T) {
	for _, last := range []string{"if1=1500", "if1="} {
		for what, begins := range map[string]func(*rig){
			"the store is there": func(r *rig) { r.give("etcd", listed("if1=9500 if2=2")) },
			"the store is down":  func(*rig) { <-time.After(second) },
		} {
			t.Run(last+" "+what, func(t *testing.T) {
				etcd, memory, stands := map[string]int{"etcd": 1}, newNotebook(), strings.TrimPrefix(last+" if2=2", "if1= ")
				life(t, etcd, "", memory, func(t *testing.T, r *rig) {
					r.steps(t, []step{{"etcd", listed("if1=9500 if2=2"), 0, "if2=2"}})
				})
				lifeOf(t, 10000, etcd, "if2=2", memory, func(t *testing.T, r *rig) {
					begins(r)
					r.steps(t, []step{{stands: "if1=9500 if2=2"}})
					r.give("etcd", listed("if1=9500 if2=2"))
					r.steps(t, []step{{"etcd", kvdbsync.Change{Events: events(last)}, 0, stands}})
				})
				lifeOf(t, 10000, etcd, stands, memory, func(t *testing.T, r *rig) {
					r.steps(t, []step{{after: second, stands: stands}})
				})
			})
		}
	}
}

package orchestrator_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
)

func TestLayers(t *testing.T) {
	steps := []struct {
		what, layer, change string
		stands              string
		txns                int
	}{
		{"a put is applied before all is known; the stale interface stays", "files", "if1=1500 if2=1500", "if1=1500 if2=1500 old=1400", 1},
		{"a removal waits", "files", "if2=", "if1=1500 if2=1500 old=1400", 0},
		{"when all is known, what nobody declares goes", "etcd", "if3=1500", "if1=1500 if3=1500", 1},
		{"the higher layer wins", "etcd", "if1=9000", "if1=9000 if3=1500", 1},
		{"what the lower says meanwhile changes nothing", "files", "if1=1400", "if1=9000 if3=1500", 0},
		{"deleting it in the higher uncovers the lower", "etcd", "if1=", "if1=1400 if3=1500", 1},
		{"what is invalid leaves what was valid", "etcd", "if3=99999", "if1=1400 if3=1500", 1},
		{"an invalid value in the higher layer leaves the lower in force", "etcd", "if1=99999", "if1=1400 if3=1500", 1},
		{"which may change", "files", "if1=1300", "if1=1300 if3=1500", 1},
		{"and go", "files", "if1=", "if3=1500", 1},
		{"bytes that are no value", "etcd", "if3={", "if3=1500", 1},
		{"what is mended is followed, all in one transaction", "etcd", "if3=1600 if1= if4=1", "if3=1600 if4=1", 1},
	}
	bubble(t, map[string]int{"files": 1, "etcd": 2}, "old=1400", func(t *testing.T, r *rig) {
		for _, s := range steps {
			before := len(r.sched.History())
			r.give(s.layer, kvdbsync.Change{Source: s.layer, Events: events(s.change), Synced: true})
			<-time.After(time.Second) // longer than the patience at the start
			synctest.Wait()
			if got := r.standing(); got != s.stands {
				t.Errorf("%s: stands %q, want %q", s.what, got, s.stands)
			}
			if got := len(r.sched.History()) - before; got != s.txns {
				t.Errorf("%s: %d transactions, want %d", s.what, got, s.txns)
			}
		}
		if n := strings.Count(r.log.String(), "at most 9216"); n != 2 {
			t.Errorf("the log says %d times what is out of range, want 2:\n%s", n, &r.log)
		}
	})
}

func TestOneTransactionWhenAllLayersComeAtOnce(t *testing.T) {
	bubble(t, map[string]int{"a": 1, "b": 2}, "old=1", func(t *testing.T, r *rig) {
		r.give("a", kvdbsync.Change{Synced: true, Events: events("if1=1")})
		r.give("b", kvdbsync.Change{Synced: true, Events: events("if2=2")})
		<-time.After(time.Second)
		synctest.Wait()
		if got, n := r.standing(), len(r.sched.History()); got != "if1=1 if2=2" || n != 1 {
			t.Errorf("stands %q after %d transactions", got, n)
		}
	})
}

func TestWhatNobodyDeclaresStaysWhileASourceHasProblems(t *testing.T) {
	bubble(t, map[string]int{"files": 1}, "old=1", func(t *testing.T, r *rig) {
		bad := []error{errors.New("routes.yaml: cannot be read")}
		r.give("files", kvdbsync.Change{Synced: true, Events: events("if1=1 if2=2"), Problems: bad})
		r.give("files", kvdbsync.Change{Synced: true, Events: events("if2="), Problems: bad})
		if got := r.standing(); got != "if1=1 old=1" {
			t.Errorf("with a problem %q stand", got)
		}
		r.give("files", kvdbsync.Change{Synced: true})
		if got := r.standing(); got != "if1=1" {
			t.Errorf("without %q stand", got)
		}
	})
}

func TestCompleteIsCalledOnce(t *testing.T) {
	bubble(t, map[string]int{"a": 1, "files": 2}, "", func(t *testing.T, r *rig) {
		bad := []error{errors.New("routes.yaml: cannot be read")}
		for i, step := range []struct {
			source string
			change kvdbsync.Change
			calls  int
		}{
			{"a", kvdbsync.Change{Synced: true, Events: events("if1=1")}, 0},
			{"files", kvdbsync.Change{Synced: true, Events: events("if2=2"), Problems: bad}, 1},
			{"files", kvdbsync.Change{Synced: true}, 1},
			{"a", kvdbsync.Change{Synced: true, Events: events("if1=2")}, 1},
		} {
			r.give(step.source, step.change)
			<-time.After(time.Second)
			synctest.Wait()
			if r.done != step.calls {
				t.Errorf("step %d: called %d times, want %d; standing: %s", i, r.done, step.calls, r.standing())
			}
			if step.calls > 0 && r.standing() == "" {
				t.Errorf("step %d: called before anything was applied", i)
			}
		}
	})
}

func TestWhatWasValidBeforeARestartStays(t *testing.T) {
	bubble(t, map[string]int{"etcd": 1}, "if1=1500 if2=1500 old=1", func(t *testing.T, r *rig) {
		r.give("etcd", kvdbsync.Change{Synced: true, Events: events("if1=99999 if2={")})
		if got := r.standing(); got != "if1=1500 if2=1500" {
			t.Errorf("%q stand", got)
		}
		r.give("etcd", kvdbsync.Change{Synced: true, Events: events("if1=9000 if2=")})
		if got := r.standing(); got != "if1=9000" {
			t.Errorf("mended, %q stand", got)
		}
	})
}

func TestProblemsAreLoggedOnce(t *testing.T) {
	bubble(t, map[string]int{"files": 1}, "", func(t *testing.T, r *rig) {
		bad := []error{errors.New("routes.yaml:3:1: no mapping")}
		r.give("files", kvdbsync.Change{Synced: true, Problems: bad})
		r.give("files", kvdbsync.Change{Synced: true, Problems: bad})
		if n := strings.Count(r.log.String(), "routes.yaml:3:1"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, &r.log)
		}
	})
}

func TestProblemsAreShown(t *testing.T) {
	bubble(t, map[string]int{"files": 1}, "", func(t *testing.T, r *rig) {
		many := make([]error, 30)
		for i := range many {
			many[i] = fmt.Errorf("routes.yaml:%d: no mapping", i+1)
		}
		r.give("files", kvdbsync.Change{Synced: true, Problems: many})
		if got := r.orch.Health()[0].Faults; len(got) != 20 || got[1] != "routes.yaml:2: no mapping" {
			t.Errorf("%q", got)
		}
		r.give("files", kvdbsync.Change{Synced: true})
		if got := r.orch.Health()[0].Faults; len(got) != 0 {
			t.Errorf("none is left, but %q", got)
		}
	})
}

func TestStatusOfWhatIsRefused(t *testing.T) {
	want := map[string][]string{
		prefix + "good":   {"CONFIGURED"},
		prefix + "big":    {"INVALID", "mtu", "10000", "at most 9216"},
		prefix + "broken": {"INVALID"},
		prefix + "other":  {"INVALID", "another", "name"},
		prefix + "entry":  {"INVALID", "line 7"},
		"config/linux/interfaces/v2/interfaces/typo": {"UNIMPLEMENTED", "did you mean"},
		"config/vpp/v2/interfaces/loop1":             {"UNIMPLEMENTED", "no descriptor"},
	}
	bubble(t, map[string]int{"etcd": 1}, "", func(t *testing.T, r *rig) {
		r.give("etcd", kvdbsync.Change{Synced: true, Events: append(
			events("good=1500 big=10000 broken={"),
			kvdbsync.Event{Key: "config/linux/interfaces/v2/interfaces/typo", Value: []byte("{}")},
			kvdbsync.Event{Key: "config/vpp/v2/interfaces/loop1", Value: []byte(`{"name":"loop1","type":"SOFTWARE_LOOPBACK"}`)},
			kvdbsync.Event{Key: prefix + "other", Value: []byte(`{"name":"another"}`)},
			kvdbsync.Event{Key: prefix + "entry", Err: errors.New("line 7: not an object")},
		)})
		for key, words := range want {
			st, ok := r.sched.Status(key)
			if !ok {
				t.Errorf("%s has no status", key)
				continue
			}
			text := fmt.Sprintf("%s: %v", st.State, st.Err)
			for _, w := range words {
				if !strings.Contains(text, w) {
					t.Errorf("%s is %q, want %q in it", key, text, w)
				}
			}
		}
	})
}

// TestValueThatNobodyDeclaresDoesNotTakeEffect checks the change that completes the sources, if it
// refuses the newest value of a key: a value that was declared and removed before does not come back.
func TestValueThatNobodyDeclaresDoesNotTakeEffect(t *testing.T) {
	bubble(t, map[string]int{"a": 1, "b": 2}, "", func(t *testing.T, r *rig) {
		r.give("a", kvdbsync.Change{Events: []kvdbsync.Event{event("if0", "3000")}})
		r.give("a", kvdbsync.Change{Events: []kvdbsync.Event{event("if0", "")}, Synced: true})
		r.give("b", kvdbsync.Change{Events: []kvdbsync.Event{event("if0", "{")}, Synced: true})
		if got := r.standing(); got != "" {
			t.Errorf("stands %q, want nothing", got)
		}
	})
}

// TestOrderDoesNotMatter feeds layers with random changes, in random batches,
// interleaved at random, and expects what the layers hold in the end to stand.
func TestOrderDoesNotMatter(t *testing.T) {
	layers := map[string]int{"a": 1, "b": 2, "c": 2}
	type step struct {
		layer string
		kvdbsync.Change
	}
	draw.Check(t, func(rt *rapid.T) {
		valid := map[string]map[string]string{"a": {}, "b": {}, "c": {}}
		var steps []step
		for range rapid.IntRange(0, 30).Draw(rt, "changes") {
			s := step{layer: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "layer")}
			s.Synced = rapid.Bool().Draw(rt, "synced")
			for i := range rapid.IntRange(0, 4).Draw(rt, "keys") {
				name := fmt.Sprintf("if%d", i)
				mtu := rapid.SampledFrom([]string{"", "1000", "2000", "3000", "10000", "{"}).Draw(rt, "mtu")
				s.Events = append(s.Events, event(name, mtu))
				switch mtu {
				case "":
					delete(valid[s.layer], name)
				case "10000", "{":
				default:
					valid[s.layer][name] = mtu
				}
			}
			steps = append(steps, s)
		}
		want := rig{stands: map[string]string{}}
		for _, layer := range []string{"a", "c", "b"} { // the lowest first
			maps.Copy(want.stands, valid[layer])
			steps = append(steps, step{layer, kvdbsync.Change{Synced: true}})
		}
		bubble(t, layers, "old=1", func(_ *testing.T, r *rig) {
			for _, s := range steps {
				r.inputs[s.layer].give(s.Change)
			}
			synctest.Wait()
			if r.standing() != want.standing() {
				rt.Errorf("stands %q, want %q", r.standing(), want.standing())
			}
		})
	})
}

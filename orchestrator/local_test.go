package orchestrator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// pairs are the changes that events reads.
func pairs(text string) (out []kvdbsync.Pair) {
	for _, e := range events(text) {
		out = append(out, kvdbsync.Pair{Key: e.Key, Value: e.Value})
	}
	return out
}

func TestWhatProgramsDeclare(t *testing.T) {
	steps := []struct {
		what     string
		replace  bool
		pairs    string
		stands   string
		recorded bool
		err      string
	}{
		{"above the store", false, "if1=9 if2=2", "if1=9 if2=2 if3=3", true, ""},
		{"a removal uncovers the store's", false, "if1=", "if1=1 if2=2 if3=3", true, ""},
		{"of a key twice the last counts", false, "if2=5 if2=6", "if1=1 if2=6 if3=3", true, ""},
		{"what nobody has can be removed", false, "if7=", "if1=1 if2=6 if3=3", false, ""},
		{"the bad is refused, the rest goes on", false, "if2=99999 if4=4", "if1=1 if2=6 if3=3 if4=4", true, "KeyErrors: [config/linux/interfaces/v2/interface/if2 (VALIDATE): invalid value: mtu is 99999; expected at most 9216]"},
		{"all of it, as a whole", true, "if1=8 if5={", "if1=8 if3=3", true, "if5 (VALIDATE): "},
		{"nothing", true, "", "if1=1 if3=3", true, ""},
	}
	bubble(t, map[string]int{"etcd": 1, "grpc": 2}, "old=1", func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1 if3=3"))
		<-time.After(time.Second)
		for _, s := range steps {
			do := r.local.Apply
			if s.replace {
				do = r.local.Replace
			}
			record, err := do(t.Context(), pairs(s.pairs))
			if got := r.standing(); got != s.stands {
				t.Errorf("%s: stands %q, want %q", s.what, got, s.stands)
			}
			if (record != nil) != s.recorded {
				t.Errorf("%s: record %+v", s.what, record)
			}
			if (err == nil) != (s.err == "") || err != nil && !strings.Contains(err.Error(), s.err) {
				t.Errorf("%s: error %v, want %q", s.what, err, s.err)
			}
		}
		if strings.Contains(r.log.String(), "refused") {
			t.Errorf("what was returned is logged, too:\n%s", &r.log)
		}
	})
}

// What is refused is told also where another source counts more.
func TestRefusedBelowAnotherSource(t *testing.T) {
	bubble(t, map[string]int{"etcd": 3, "grpc": 2}, "", func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1"))
		record, err := r.local.Apply(t.Context(), pairs("if1=99999"))
		if record != nil || err == nil || !strings.Contains(err.Error(), "at most 9216") {
			t.Errorf("%+v, %v", record, err)
		}
	})
}

// A program that comes first waits for the first transaction; nothing is removed
// before the store is there.
func TestAProgramIsThereBeforeTheStore(t *testing.T) {
	bubble(t, map[string]int{"etcd": 1, "grpc": 2}, "old=1", func(t *testing.T, r *rig) {
		begun := time.Now()
		record, err := r.local.Apply(t.Context(), pairs("if1=9"))
		if err != nil || record == nil || time.Since(begun) != 100*time.Millisecond || r.standing() != "if1=9 old=1" {
			t.Errorf("%+v, %v after %s: %q stand", record, err, time.Since(begun), r.standing())
		}
		r.give("etcd", listed("if2=2"))
		if got := r.standing(); got != "if1=9 if2=2" {
			t.Errorf("%q stand", got)
		}
	})
}

// What programs declared lives with the agent.
func TestWhatProgramsDeclaredOutlivesARestart(t *testing.T) {
	layers := map[string]int{"etcd": 1, "grpc": 2}
	memory := newNotebook()
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1"))
		if _, err := r.local.Apply(t.Context(), pairs("if1=9 if2=2")); err != nil {
			t.Error(err)
		}
	})
	life(t, layers, "old=1", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{"etcd", listed("if1=1"), 0, "if1=9 if2=2"}})
		if _, err := r.local.Replace(t.Context(), pairs("if3=3")); err != nil {
			t.Error(err)
		}
		r.steps(t, []step{{stands: "if1=1 if3=3"}})
	})
}

func TestProgramsThatDoNotWait(t *testing.T) {
	bubble(t, map[string]int{"etcd": 1, "grpc": 2}, "", func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := r.local.Apply(ctx, pairs("if1=1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got := r.standing(); got != "if1=1" {
			t.Errorf("what had begun is %q", got)
		}
	})
	idle := orchestrator.NewLocal()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := idle.Apply(ctx, nil); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not begun") {
		t.Errorf("nobody there: %v", err)
	}
	o := orchestrator.New(scheduler.New(scheduler.Options{}), orchestrator.Options{Sources: []orchestrator.Source{{Name: "grpc", Local: idle}}})
	if err := o.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Apply(t.Context(), nil); !errors.Is(err, orchestrator.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}

package orchestrator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
)

// TestUnconfigured starts an agent again without a store that held keys: its values stay, with
// their priority, until they are forgotten.
func TestUnconfigured(t *testing.T) {
	forget := func(t *testing.T, r *rig, name, fails string) {
		t.Helper()
		_, err := r.orch.Forget(t.Context(), name)
		if fails == "" && err != nil || fails != "" && (!errors.Is(err, orchestrator.ErrNoSource) || !strings.Contains(err.Error(), fails)) {
			t.Errorf("forget %s: %v, want %q", name, err, fails)
		}
	}
	both := map[string]int{"files": 0, "etcd": -1}
	for _, tt := range []struct {
		what   string
		layers map[string]int // of the second start
		stale  error
		then   func(t *testing.T, r *rig)
	}{
		{"beside another store", map[string]int{"etcd": -1}, nil, func(t *testing.T, r *rig) {
			r.steps(t, []step{
				{"etcd", listed("if1=5 if3=3"), 100 * second, "if1=1 if2=2 if3=3"},
				{"etcd", kvdbsync.Change{Events: events("if1=6 if3=")}, 0, "if1=1 if2=2"},
			})
			const want = `level=WARN msg="source held keys at the last run and is not configured now; keeping its items until it is forgotten" source=files keys=2 ` +
				`forgetting_removes="` + prefix + "if1, " + prefix + `if2"`
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("the log does not say %s:\n%s", want, &r.log)
			}
			if h := r.orch.Health()[0]; h.Source != "files" || !h.Unconfigured || h.Doubted != 2 || h.Err == nil {
				t.Errorf("health %+v", h)
			}
			forget(t, r, "etcd", "expected one of files")
			r.steps(t, []step{{stands: "if1=1 if2=2"}})
			forget(t, r, "files", "")
			r.steps(t, []step{{stands: "if1=6"}})
			forget(t, r, "files", "there is none")
		}},
		{"another kind of store", map[string]int{"redis": 3}, nil, func(t *testing.T, r *rig) {
			r.steps(t, []step{{"redis", listed(""), second, "if1=1 if2=2 if3=3"}})
			forget(t, r, "etcd", "")
			r.steps(t, []step{{stands: "if1=1 if2=2"}})
			forget(t, r, "files", "")
			r.steps(t, []step{{stands: ""}})
		}},
		{"no store", nil, nil, func(t *testing.T, r *rig) { r.steps(t, []step{{after: second, stands: "if1=1 if2=2 if3=3"}}) }},
		{"a state that may be old", map[string]int{"etcd": -1}, errors.New("disk full"), func(t *testing.T, r *rig) {
			r.steps(t, []step{{"etcd", listed("if3=3"), second, "if1=1 if2=2 if3=3"}})
		}},
		// The removal waits for the store that is not complete yet.
		{"forgotten early", map[string]int{"etcd": -1}, nil, func(t *testing.T, r *rig) {
			forget(t, r, "files", "")
			r.steps(t, []step{{after: second, stands: "if1=1 if2=2 if3=3"}, {"etcd", listed("if3=3"), 0, "if3=3"}})
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			memory := newNotebook()
			life(t, both, "", memory, func(_ *testing.T, r *rig) {
				r.give("files", listed("if1=1 if2=2"))
				r.give("etcd", listed("if3=3"))
			})
			memory.stale = tt.stale
			life(t, tt.layers, "if1=1 if2=2 if3=3", memory, tt.then)
		})
	}
}

// TestConfiguredAgain starts an agent without a store, and then with it: the store decides again. A
// store that was forgotten meanwhile has no saved values.
func TestConfiguredAgain(t *testing.T) {
	memory := newNotebook()
	both := map[string]int{"files": 2, "etcd": 1}
	only := map[string]int{"etcd": 1}
	life(t, both, "", memory, func(_ *testing.T, r *rig) {
		r.give("files", listed("if1=1 if2=99999"))
		r.give("etcd", listed("if3=3"))
	})
	life(t, only, "if1=1 if3=3", memory, func(_ *testing.T, r *rig) { r.give("etcd", listed("if3=3")) })
	life(t, both, "if1=1 if3=3", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{
			{"etcd", listed("if3=3"), second, "if1=1 if3=3"},
			{"files", listed("if1=7"), 0, "if1=7 if3=3"},
		})
	})
	life(t, only, "if1=7 if3=3", memory, func(t *testing.T, r *rig) {
		r.give("etcd", listed("if3=3"))
		if _, err := r.orch.Forget(t.Context(), "files"); err != nil {
			t.Error(err)
		}
	})
	for key := range memory.keys {
		if strings.HasPrefix(key, "files\x00") {
			t.Errorf("the memory still has %q", key)
		}
	}
	life(t, only, "if3=3", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{"etcd", listed("if3=3"), second, "if3=3"}})
		if all := r.orch.Health(); len(all) != 1 {
			t.Errorf("sources %+v", all)
		}
	})
}

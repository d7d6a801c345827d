package orchestrator_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
)

// writers are those of the key of an interface, the highest priority first.
func (r *rig) writers(t *testing.T, name string) string {
	t.Helper()
	all, err := r.orch.Declarations(t.Context(), prefix+name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range all {
		out = append(out, d.Writer)
	}
	return strings.Join(out, "; ")
}

// revised are events of one revision.
func revised(rev int64, pairs string) []kvdbsync.Event {
	out := events(pairs)
	for i := range out {
		out[i].Rev = rev
	}
	return out
}

// A declaration names its writer as the transaction did: by the revision of its key, also if the value is refused, and
// also if an earlier run has saved it, once the store has confirmed it.
func TestWriterIsThatOfTheTransaction(t *testing.T) {
	layers, memory := map[string]int{"files": 3, "etcd": 2}, newNotebook()
	check := func(t *testing.T, r *rig, want map[string]string) {
		t.Helper()
		for name, writers := range want {
			if got := r.writers(t, name); got != writers {
				t.Errorf("writers of %s: %q, want %q", name, got, writers)
			}
		}
	}
	ask := orchestrator.Request{Layer: "agentctl", By: "root (pid 42)", Values: []orchestrator.Declared{{Key: prefix + "if3", JSON: events("if3=3")[0].Value}}}
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		first := listed("")
		first.Source, first.Events = "etcd", append(revised(55, "if1=1"), revised(57, "if2=2")...)
		r.give("etcd", first)
		r.give("files", listed("if2=7"))
		if _, err := r.orch.Declare(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		check(t, r, map[string]string{"if1": "etcd, revision 55", "if2": "files; etcd, revision 57", "if3": "agentctl, by root (pid 42)"})

		r.give("etcd", kvdbsync.Change{Source: "etcd", Events: revised(58, "if1=99999")})
		check(t, r, map[string]string{"if1": "etcd, revision 58"})
		records := r.sched.History()
		if last := records[len(records)-1]; last.Description != "etcd, revision 58" {
			t.Errorf("the transaction says %q", last.Description)
		}
	})
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		<-time.After(time.Second)
		synctest.Wait()
		check(t, r, map[string]string{"if1": "etcd", "if2": "files; etcd", "if3": "agentctl"})
		first := listed("")
		first.Source, first.Events = "etcd", append(revised(58, "if1=99999"), revised(57, "if2=2")...)
		r.give("etcd", first)
		check(t, r, map[string]string{"if1": "etcd, revision 58", "if2": "files; etcd, revision 57"})
	})
}

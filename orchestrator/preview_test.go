package orchestrator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// planned returns the operations of a plan: "CREATE if1".
func planned(r *scheduler.Record) string {
	var out []string
	for _, o := range r.Planned.All() {
		text := o.Verb.String() + " " + o.Key[strings.LastIndex(o.Key, "/")+1:]
		if o.NewErr != nil {
			text += " " + o.NewState.String()
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestPreview plans another content of a source, and then gives it to the source: what is planned
// is what happens.
func TestPreview(t *testing.T) {
	for _, test := range []struct {
		name, source, content string
		plan, stands          string
	}{
		{"the same", "etcd", "if1=1 if2=2 if4=4", "", "if1=1 if2=7 if3=3 if4=4"},
		{"less", "etcd", "if1=1", "DELETE if4", "if1=1 if2=7 if3=3"},
		{"nothing: another source has if2", "files", "", "DELETE if3, UPDATE if2", "if1=1 if2=2 if4=4"},
		{"below another source", "etcd", "if1=1 if2=9 if4=5", "UPDATE if4", "if1=1 if2=7 if3=3 if4=5"},
		{"above another source", "files", "if1=8 if2=7 if3=3", "UPDATE if1", "if1=8 if2=7 if3=3 if4=4"},
		{"more", "etcd", "if1=1 if2=2 if4=4 if5=5", "CREATE if5", "if1=1 if2=7 if3=3 if4=4 if5=5"},
		{"a refused value keeps the last one", "files", "if2=99999 if3=3", "VALIDATE if2 INVALID", "if1=1 if2=7 if3=3 if4=4"},
		{"a refused value without a last one", "etcd", "if1=1 if2=2 if4=4 if5=99999", "VALIDATE if5 INVALID", "if1=1 if2=7 if3=3 if4=4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, map[string]int{"files": 2, "etcd": 1}, "", func(t *testing.T, r *rig) {
				r.give("etcd", listed("if1=1 if2=2 if4=4"))
				r.give("files", listed("if2=7 if3=3"))
				before := r.standing()
				preview, err := r.orch.Preview(t.Context(), orchestrator.PreviewQuery{Source: test.source, Content: events(test.content)})
				if err != nil {
					t.Fatal(err)
				}
				plan, err := r.sched.Plan(t.Context(), scheduler.Txn{Changes: preview.Changes})
				if err != nil {
					t.Fatal(err)
				}
				if got := planned(plan); got != test.plan {
					t.Errorf("plan %q; expected %q", got, test.plan)
				}
				if got := r.standing(); got != before {
					t.Errorf("planning changed %q to %q", before, got)
				}
				// Delete events are obeyed at once.
				had, has := map[string]string{"etcd": "if1 if2 if4", "files": "if2 if3"}[test.source], events(test.content)
				for name := range strings.FieldsSeq(had) {
					if !strings.Contains(test.content, name+"=") {
						has = append(has, event(name, ""))
					}
				}
				r.give(test.source, kvdbsync.Change{Synced: true, Events: has})
				if got := r.standing(); got != test.stands {
					t.Errorf("then stands %q; expected %q", got, test.stands)
				}
			})
		})
	}
}

func TestPreviewLayers(t *testing.T) {
	bubble(t, map[string]int{"files": 2}, "", func(t *testing.T, r *rig) {
		r.give("files", listed("if1=1"))
		for _, test := range []struct {
			source, content string
			fresh           bool
			plan            string
			err             error
		}{
			{"high", "if1=7 if2=2", true, "UPDATE if1, CREATE if2", nil}, // priority 3
			{"low", "if1=7 if2=2", true, "CREATE if2", nil},              // priority 1
			{"low", "if2=2", false, "", orchestrator.ErrNoSource},
			{"redis", "if2=2", true, "", orchestrator.ErrLayerName},
		} {
			preview, err := r.orch.Preview(t.Context(), orchestrator.PreviewQuery{Source: test.source, Content: events(test.content), New: test.fresh})
			if !errors.Is(err, test.err) {
				t.Errorf("%+v: error %v", test, err)
			}
			plan, err := r.sched.Plan(t.Context(), scheduler.Txn{Changes: preview.Changes})
			if err != nil {
				t.Fatal(err)
			}
			if got := planned(plan); got != test.plan {
				t.Errorf("%+v: plan %q", test, got)
			}
		}
		if got := r.layers(); got != "files" {
			t.Errorf("sources %q; no layer may come from a plan", got)
		}
	})
}

// TestPreviewParts plans changes of some keys of a source: its other keys stay.
func TestPreviewParts(t *testing.T) {
	bubble(t, map[string]int{"files": 2, "etcd": 1}, "", func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1 if2=2"))
		r.give("files", listed("if2=7"))
		for _, test := range []struct{ source, delete, content, plan string }{
			{"etcd", "", "if3=3", "CREATE if3"},
			{"etcd", "if1", "if3=3", "DELETE if1, CREATE if3"},
			{"files", "if2", "", "UPDATE if2"},
			{"etcd", "if2", "", ""},
			{"etcd", "if9", "", ""},
		} {
			content := events(test.content)
			if test.delete != "" {
				content = append(content, event(test.delete, ""))
			}
			preview, err := r.orch.Preview(t.Context(), orchestrator.PreviewQuery{Source: test.source, Content: content, Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := r.sched.Plan(t.Context(), scheduler.Txn{Changes: preview.Changes})
			if err != nil {
				t.Fatal(err)
			}
			if got := planned(plan); got != test.plan {
				t.Errorf("%s without %q, with %q: plan %q; expected %q", test.source, test.delete, test.content, got, test.plan)
			}
		}
	})
}

// TestPreviewKept previews contents with keys that keep the value of another source.
func TestPreviewKept(t *testing.T) {
	bubble(t, map[string]int{"files": 3, "etcd": 2, "redis": 1}, "", func(t *testing.T, r *rig) {
		r.give("files", listed("if1=1 if2=2"))
		r.give("etcd", listed("if1=1 if2=7 if3=3"))
		r.give("redis", listed("if3=3 if4=4"))
		for _, test := range []struct {
			name, source, content, deletes string
			whole                          bool
			kept                           string
		}{
			{name: "equal to the value above", source: "etcd", content: "if1=1 if2=2"},
			{name: "other than the value above", source: "etcd", content: "if1=5", kept: "if1 files"},
			{name: "as it is, and hidden", source: "etcd", content: "if2=7", kept: "if2 files"},
			{name: "above others", source: "files", content: "if1=5 if3=5 if4=5"},
			{name: "of two above, the highest", source: "redis", content: "if1=5 if3=5", kept: "if1 files, if3 etcd"},
			{name: "refused, and hidden", source: "redis", content: "if3=99999", kept: "if3 etcd"},
			{name: "refused, above another", source: "etcd", content: "if4=99999"},
			{name: "deleted below another", source: "etcd", deletes: "if2", kept: "if2 files"},
			{name: "deleted above an equal value", source: "etcd", deletes: "if3", kept: "if3 redis"},
			{name: "deleted, and only others have it", source: "etcd", deletes: "if4 if9", kept: "if4 redis"},
			{name: "deleted by omission", source: "etcd", content: "if1=1", whole: true, kept: "if2 files, if3 redis"},
			{name: "a layer that does not exist yet", source: "low", content: "if1=5 if4=5 if5=5", deletes: "if3", kept: "if1 files, if3 etcd"},
			{name: "the same, whole", source: "low", content: "if1=5", whole: true, kept: "if1 files"},
			{name: "a layer above", source: "high", content: "if3=5", deletes: "if4", kept: "if4 redis"},
		} {
			content := events(test.content)
			for name := range strings.FieldsSeq(test.deletes) {
				content = append(content, event(name, ""))
			}
			preview, err := r.orch.Preview(t.Context(), orchestrator.PreviewQuery{Source: test.source, Content: content, Keep: !test.whole, New: true})
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, k := range preview.Kept {
				kept = append(kept, strings.TrimPrefix(k.Key, prefix)+" "+k.By)
			}
			if got := strings.Join(kept, ", "); got != test.kept {
				t.Errorf("%s: kept %q; expected %q", test.name, got, test.kept)
			}
		}
	})
}

// TestContent reads what each source has, effective or not.
func TestContent(t *testing.T) {
	bubble(t, map[string]int{"files": 2, "etcd": 1}, "", func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1 if2=2"))
		r.give("files", listed("if2=7 if3=99999"))
		held, err := r.orch.Content(t.Context(), "etcd")
		if err != nil || len(held) != 2 || !strings.HasSuffix(held[0].Key, "if1") || held[1].Message == nil || held[1].Err != nil {
			t.Errorf("etcd has %+v, %v", held, err)
		}
		held, err = r.orch.Content(t.Context(), "files")
		if err != nil || len(held) != 2 || held[1].Message != nil || held[1].Err == nil {
			t.Errorf("files have %+v, %v", held, err)
		}
		if _, err := r.orch.Content(t.Context(), "none"); !errors.Is(err, orchestrator.ErrNoSource) {
			t.Errorf("a source that does not exist: %v", err)
		}
	})
}

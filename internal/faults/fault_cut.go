package faults

import (
	"maps"
	"slices"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
)

// cutFaults separate the agent from its store.
func cutFaults() []Fault {
	cutBy := func(how string, a stores.Ability) Fault {
		return Fault{Name: "cut off (" + how + ") while it is written", Needs: a, Do: func(r *Run) {
			r.Store.Cut(how)
			r.churn(50)
			r.linger()
			r.Store.Heal()
		}}
	}
	during := func(what string, do func(*Run)) Fault {
		return Fault{Name: what + " during a cut", OneOf: stores.CutAny, Do: func(r *Run) {
			r.cut()
			do(r)
			r.Store.Heal()
		}}
	}
	compacted := during("compaction", func(r *Run) { r.churn(30); r.Store.Compact(); r.churn(5) })
	compacted.Needs = stores.Compaction
	return []Fault{
		cutBy("drop", stores.CutDrop), cutBy("reset", stores.CutReset), cutBy("silent", stores.CutSilent), cutBy("taken", stores.CutTaken),
		during("put", func(r *Run) { r.Put("new1", "new2") }),
		during("update", func(r *Run) { r.Put(r.some()...) }),
		during("delete", func(r *Run) { r.Delete(r.some()...) }),
		during("delete of everything", func(r *Run) { r.Delete(slices.Sorted(maps.Keys(r.holds))...) }),
		// The agent must not see the key at all, and must not fail on its removal.
		during("put, then delete", func(r *Run) { r.Put("brief"); r.Delete("brief") }),
		// The text is the same again, but the revision is another one.
		during("delete, then put", func(r *Run) {
			for _, name := range r.some() {
				same := r.holds[name]
				r.Delete(name)
				r.Write(history.Change{Key: name, Text: same})
			}
		}),
		compacted,
	}
}

// cut separates the agent from the store in the first way that the store supports.
func (r *Run) cut() {
	for how, a := range map[string]stores.Ability{"drop": stores.CutDrop, "taken": stores.CutTaken} {
		if r.Kind.Can&a != 0 {
			r.Store.Cut(how)
		}
	}
}

// save copies the store.
func (r *Run) save() {
	r.Store.Save()
	r.saved = maps.Clone(r.holds)
}

// restore replaces the store by the copy.
func (r *Run) restore() {
	begun := time.Now()
	r.Store.Restore()
	r.wiped(begun, r.saved)
}

package faults

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
)

// lineFaults are faults without a cut: a part of the line is silent, the line is slow, or
// the server drops keys for lack of memory.
func lineFaults() []Fault {
	return []Fault{
		{Name: "one silent connection", Needs: stores.OneSilent, Do: oneSilent},
		{Name: "slow line", Needs: stores.SlowLine | stores.CutDrop, Do: slowLine},
		{Name: "eviction", Needs: stores.Evicting, Do: evicted, Grace: 10 * time.Minute},
	}
}

// oneSilent silences the connection that waits for changes. All others work, including new
// ones.
func oneSilent(r *Run) {
	r.churn(5)
	r.await("before the silence")
	if n := r.Store.Silence(); n == 0 {
		r.Fatal("no connection waits for changes")
	}
	r.heal()
	r.churn(20)
}

// slowLine makes the agent list the store again over a slow line.
func slowLine(r *Run) {
	r.cut()
	var changes []history.Change
	for _, name := range r.names(r.Scale.SlowKeys) {
		changes = append(changes, history.Change{Key: name, Text: r.text() + strings.Repeat("x", r.Scale.SlowBytes)})
	}
	r.inGroups(changes)
	r.Store.Slow(r.Scale.SlowRate)
	r.Store.Heal()
	r.heal()
	r.await("listed over a slow line")
	r.Store.Slow(0)
}

// evicted makes the server drop all keys, and writes them again once the agent has
// reported that. Nobody has deleted a key, so no item may be removed meanwhile.
func evicted(r *Run) {
	r.churn(5)
	r.await("before the eviction")
	r.Store.Evict()
	r.until("the agent tells of evicted keys", func() bool { return r.Agent.Source.Health().Problems > 0 })
	r.heal()
	r.Put(slices.Sorted(maps.Keys(r.holds))...)
}

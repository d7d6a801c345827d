package faults

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
)

// doubtFaults make keys look deleted although nobody deleted them.
func doubtFaults() []Fault {
	return []Fault{
		{Name: "emptied, and refilled key by key", OneOf: stores.Emptied | stores.FilesOfPeople, Alone: refilled},
		{Name: "emptied, and cut off 1.5 s later", Needs: stores.Emptied, OneOf: stores.CutAny, Alone: emptiedAndCut},
		{Name: "upgraded member by member", Needs: stores.Rolling, Alone: upgraded},
	}
}

// refilled makes the agent list the store when it was emptied and one key is back. The
// others come back unchanged, one by one. The southbound must not change.
func refilled(r *Run) time.Duration {
	r.Scale.Grace = r.Scale.Bound // so that it does not end while a slow machine refills the store
	r.follow()
	before, names := maps.Clone(r.holds), slices.Sorted(maps.Keys(r.holds))
	verbs, _ := r.Agent.South.Verbs()
	r.emptied(func() { r.Write(history.Change{Key: names[0], Text: before[names[0]]}) })
	r.awaitDoubt()
	for _, name := range names[1:] {
		r.Write(history.Change{Key: name, Text: before[name]})
	}
	r.heal()
	took := r.awaitRecovery()
	// awaitRecovery writes one key itself.
	if now, _ := r.Agent.South.Verbs(); now != verbs+1 {
		r.Errorf("%d verbs ran, want none but that of the last key", now-verbs)
	}
	return took
}

// emptiedAndCut makes the agent list the empty store twice within the grace time. The
// southbound stays for all of that time, and is removed then.
func emptiedAndCut(r *Run) time.Duration {
	// Long enough for two listings.
	r.Scale.Grace = max(r.Scale.Grace, 3*time.Second)
	r.follow()
	begun := time.Now()
	r.emptied(func() {})
	r.awaitDoubt()
	pause := time.NewTimer(1500 * time.Millisecond)
	defer pause.Stop()
	<-pause.C
	r.cut()
	r.Store.Heal()
	r.await("after the grace time")
	// The earliest time at which a removal is right.
	least := r.record.Since(begun) + r.Scale.Grace
	for _, seen := range r.record.History().Seen {
		if seen.Who == "southbound" && seen.At < least && slices.ContainsFunc(seen.Changes, func(c history.Change) bool { return c.Text == "" }) {
			r.Fatalf("something was removed %v before the grace time had passed", least-seen.At)
		}
	}
	return r.awaitRecovery()
}

// emptied empties the store, and lets the agent list it once refill has returned.
func (r *Run) emptied(refill func()) {
	r.Helper()
	begun := time.Now()
	switch {
	case r.Kind.Can&stores.FilesOfPeople != 0:
		if err := os.RemoveAll(r.Store.Dir); err != nil {
			r.Fatal(err)
		}
		r.Store.Wipe()
		r.wiped(begun, map[string]string{})
		if err := os.Mkdir(r.Store.Dir, 0o700); err != nil {
			r.Fatal(err)
		}
		refill()
	case r.Kind.Can&stores.CutTaken != 0: // the agent has no store while the file is taken
		r.Store.Kill()
		r.Store.Wipe()
		r.wiped(begun, map[string]string{})
		refill()
		r.Store.Start()
	default:
		r.cut()
		r.Store.Kill()
		r.Store.Wipe()
		r.wiped(begun, map[string]string{})
		r.Store.Start()
		refill()
		r.Store.Heal()
	}
}

// awaitDoubt waits until the agent doubts the removal of keys.
func (r *Run) awaitDoubt() {
	r.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(r.Scale.Bound); r.Agent.orch.Health()[0].Doubted == 0; <-tick.C {
		if time.Now().After(late) {
			r.Fatal("the agent is not in doubt about any key")
		}
	}
}

// upgraded stops and starts the members one after the other, and writes the store each
// time. It returns the longest time that a change took.
func upgraded(r *Run) (longest time.Duration) {
	r.follow()
	step := func(what string) {
		r.churn(5)
		written := time.Now()
		r.await(what)
		_, last := r.Agent.South.Verbs()
		longest = max(longest, last.Sub(written))
	}
	for _, m := range r.Store.Members {
		m.Stop()
		step("a member is away")
		m.Start()
		step("a member is back")
	}
	if r.Scale.Swift > 0 && longest > r.Scale.Swift {
		r.Errorf("a change took %v; the bar is %v", longest, r.Scale.Swift)
	}
	r.heal()
	return max(longest, r.awaitRecovery())
}

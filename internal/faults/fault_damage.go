package faults

import (
	"context"
	"errors"
	"time"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/kvdbsync"
)

// damageFaults are writes of other programs into the agent's own file while it is open.
func damageFaults() []Fault {
	return []Fault{{Name: "damaged Bolt file, and a good copy in its place", Needs: stores.OwnFile, Do: damagedFile}}
}

// damagedFile damages the file in each way. Every use of it fails at once, the source
// reports it, and the applied state stays until a good copy is at the path.
func damagedFile(r *Run) {
	r.distrusted = true
	for _, how := range []string{"emptied", "cut", "scribbled"} {
		r.save()
		r.churn(10)
		r.await("before the file is damaged")
		begun := time.Now()
		r.Store.Damage(how)
		r.refused(how)
		// The agent must notice it by itself, without a read that fails by chance.
		r.awaitLost(how)
		// Values that were applied stay.
		r.await("a damaged file (" + how + ") in force")
		r.Store.Mend()
		r.wiped(begun, r.saved)
	}
	r.heal()
	r.churn(10)
}

// refused checks that a damaged store neither accepts a write nor hangs.
func (r *Run) refused(how string) {
	r.Helper()
	// A goroutine of its own, because a damaged file could make bbolt loop or block.
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(r.ctx, r.Scale.Bound)
		defer cancel()
		if err := r.Store.Write(ctx, history.Change{Key: r.name(0), Text: "lost"}); err == nil {
			r.Errorf("a damaged store (%s) took a write", how)
		}
		if _, err := r.Store.List(ctx); err == nil {
			r.Errorf("a damaged store (%s) was listed", how)
		}
	}()
	late := time.NewTimer(r.Scale.Bound)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		r.Fatalf("a damaged store (%s) hangs", how)
	}
}

// awaitLost waits until the source reports the loss of its store.
func (r *Run) awaitLost(how string) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(r.Scale.Bound); ; <-tick.C {
		h := r.Agent.Source.Health()
		if h.State == kvdbsync.Lost && errors.Is(h.Err, bolt.ErrDamaged) {
			return
		}
		if time.Now().After(late) {
			r.Fatalf("damaged (%s), and the source says: %+v", how, h)
		}
	}
}

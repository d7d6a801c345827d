package vpp

import (
	"context"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
)

// patience is how long a verb counts as running. A verb that runs longer hangs, and the
// scheduler abandons it soon: nobody waits for it.
const patience = 10 * time.Second

// longestTurn is how long a verb waits for its turn at most: for the verbs before it, and
// for one that runs alone. Both together take less than Options.VerbTimeout by default.
const longestTurn = 2 * patience

// turns lets verbs run side by side, or one alone.
type turns struct{ running *semaphore.Weighted }

// newTurns returns turns that any number of verbs can share.
func newTurns() turns { return turns{semaphore.NewWeighted(math.MaxInt64)} }

// take waits until no other verb runs alone, or, if the caller is to run alone, until no
// other verb runs. It waits for longestTurn at most; false: it was not the caller's turn
// by then. end must be called once, when the verb has ended.
func (t turns) take(alone bool) (end func(), ok bool) {
	weight := int64(1)
	if alone {
		weight = math.MaxInt64
	}
	if !t.wait(weight) {
		return func() {}, false
	}
	release := func() { t.running.Release(weight) }
	hangs := time.AfterFunc(patience, release)
	return func() {
		if hangs.Stop() { // else it was released after patience
			release()
		}
	}, true
}

// wait waits for a weight of running. Mostly it is free, and no timer is needed.
func (t turns) wait(weight int64) bool {
	if t.running.TryAcquire(weight) { // not before others that wait
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestTurn)
	defer cancel()
	return t.running.Acquire(ctx, weight) == nil
}

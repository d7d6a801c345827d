package main

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// startGC is GOGC while the agent takes in the declared configuration. Nearly all of
	// that memory stays in use, so collecting garbage would cost a third of the work for
	// little gain.
	startGC = 400
	// longestStart bounds the start when a source never becomes complete.
	longestStart = time.Minute
	// quietTime is how long no operation may run before the start counts as over. Links
	// report that they are up some milliseconds after their creation, and only then their
	// routes are created.
	quietTime = time.Second
	// mergeTime is how long after the start the journals of the state folder have been merged,
	// which takes memory for a moment.
	mergeTime = 20 * time.Second
)

// allowHeapGrowth lets the heap grow until done is called, or longestStart has passed. Then
// the usual limit applies again, and memory that only the start needed goes back to the
// system. A user's GOGC is left alone.
func allowHeapGrowth(env func(string) (string, bool)) (done func()) {
	restore := func() {}
	if _, set := env("GOGC"); !set {
		before := debug.SetGCPercent(startGC)
		restore = func() { debug.SetGCPercent(before) }
	}
	done = sync.OnceFunc(func() {
		restore()
		debug.FreeOSMemory()
		time.AfterFunc(mergeTime, debug.FreeOSMemory)
	})
	time.AfterFunc(longestStart, done)
	return done
}

// awaitQuiet returns when the count of operations has not changed for quietTime, or ctx ends.
func awaitQuiet(ctx context.Context, operations func() uint64) {
	quiet := time.NewTicker(quietTime)
	defer quiet.Stop()
	for before, now := uint64(0), operations(); ; before, now = now, operations() {
		if now == before {
			return
		}
		select {
		case <-quiet.C:
		case <-ctx.Done():
			return
		}
	}
}

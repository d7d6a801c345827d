package main

import (
	"runtime/debug"
	"sync"
	"time"
)

const (
	// startGC is GOGC while the agent takes in what is declared: nearly all of that stays,
	// so that looking for garbage would be a third of the work, and in vain.
	startGC = 400
	// longestStart is when a start is over at the latest, whatever became of it.
	longestStart = time.Minute
)

// takeIn lets the heap grow until the function that it returns is called. Who has set
// GOGC knows better.
func takeIn(env func(string) (string, bool)) (done func()) {
	if _, said := env("GOGC"); said {
		return func() {}
	}
	before := debug.SetGCPercent(startGC)
	done = sync.OnceFunc(func() { debug.SetGCPercent(before) })
	time.AfterFunc(longestStart, done)
	return done
}

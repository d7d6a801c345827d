package kvdbsync

import (
	"runtime"
	"slices"
	"sync"
)

// lookedAtOnce is how many events are looked at before others may have the processor.
const lookedAtOnce = 512

// A foresight looks at events of a listing while the rest is listed, on all processors
// but one: that is the listing's, which would else wait for its turn with each page.
type foresight struct {
	look    func(Event) any // puts what it returns into the event
	working sync.WaitGroup

	mu      sync.Mutex // guards what follows
	todo    [][]Event
	workers int
}

// add has events looked at soon.
func (f *foresight) add(events []Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.todo = slices.AppendSeq(f.todo, slices.Chunk(events, lookedAtOnce))
	for f.workers < min(len(f.todo), max(1, runtime.GOMAXPROCS(0)-1)) {
		f.workers++
		f.working.Go(f.work)
	}
}

func (f *foresight) work() {
	for some := f.next(); some != nil; some = f.next() {
		for i := range some {
			some[i].Ahead = f.look(some[i])
		}
	}
}

// next takes what is to be looked at; nil: nothing is, and the worker ends.
func (f *foresight) next() (some []Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.todo) == 0 {
		f.todo = nil // nor what it was
		f.workers--
		return nil
	}
	some, f.todo = f.todo[0], f.todo[1:]
	return some
}

// finish returns when all has been looked at, and helps: nothing is listed any more.
func (f *foresight) finish() {
	f.mu.Lock()
	f.workers++
	f.mu.Unlock()
	f.work()
	f.working.Wait()
}

// end leaves out what has not been looked at.
func (f *foresight) end() {
	f.mu.Lock()
	f.todo = nil
	f.mu.Unlock()
	f.working.Wait()
}

package kvdbsync

import (
	"runtime"
	"slices"
	"sync"
)

// predecodeChunk is the number of events that are decoded before another goroutine may
// run.
const predecodeChunk = 512

// A predecoder decodes listed events in parallel and leaves one CPU to the listing, which
// would otherwise wait for its turn after each page.
type predecoder struct {
	decode  func(Event) any // its result goes into Event.Decoded
	working sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	todo    [][]Event
	workers int
}

// decodeAll decodes events, on all CPUs if there are many.
func decodeAll(decode func(Event) any, events []Event) {
	for i := range events[:min(len(events), predecodeChunk)] {
		events[i].Decoded = decode(events[i])
	}
	if len(events) > predecodeChunk {
		p := predecoder{decode: decode}
		p.add(events[predecodeChunk:])
		p.finish()
	}
}

// add queues events. The predecoder owns their Decoded until finish or stop.
func (p *predecoder) add(events []Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.todo = slices.AppendSeq(p.todo, slices.Chunk(events, predecodeChunk))
	for p.workers < min(len(p.todo), max(1, runtime.GOMAXPROCS(0)-1)) {
		p.workers++
		p.working.Go(p.work)
	}
}

// work decodes groups of events until there are no more. Each event belongs to one worker.
func (p *predecoder) work() {
	for events := p.next(); events != nil; events = p.next() {
		for i := range events {
			events[i].Decoded = p.decode(events[i])
		}
	}
}

// next takes a chunk. After nil the worker ends.
func (p *predecoder) next() (events []Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.todo) == 0 {
		p.todo = nil // frees the chunks that were taken
		p.workers--
		return nil
	}
	events, p.todo = p.todo[0], p.todo[1:]
	return events
}

// finish decodes the rest, on all CPUs because the listing is complete, and returns when
// all is decoded.
func (p *predecoder) finish() {
	p.mu.Lock()
	p.workers++
	p.mu.Unlock()
	p.work()
	p.working.Wait()
}

// stop drops the rest and returns when no worker runs any more.
func (p *predecoder) stop() {
	p.mu.Lock()
	p.todo = nil
	p.mu.Unlock()
	p.working.Wait()
}

package history

import (
	"slices"
	"sync"
	"time"
)

// A Recorder writes a History down. It may be used by many.
type Recorder struct {
	begun time.Time

	mu sync.Mutex // guards h
	h  History
}

// NewRecorder begins at begun.
func NewRecorder(begun time.Time) *Recorder { return &Recorder{begun: begun} }

// Since is the time of a history at now.
func (r *Recorder) Since(now time.Time) time.Duration { return now.Sub(r.begun) }

// Write notes a write that has just returned.
func (r *Recorder) Write(from time.Time, all bool, changes ...Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Writes = append(r.h.Writes, Write{From: r.Since(from), To: r.Since(time.Now()), Changes: changes, All: all})
}

// See notes what who is told now.
func (r *Recorder) See(who string, all bool, changes ...Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Seen = append(r.h.Seen, Seen{At: r.Since(time.Now()), Who: who, Changes: changes, All: all})
}

// History is what was written down until now.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{Writes: slices.Clone(r.h.Writes), Seen: slices.Clone(r.h.Seen)}
}

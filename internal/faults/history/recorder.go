package history

import (
	"slices"
	"sync"
	"time"
)

// A Recorder writes a History down. Any goroutine may call its methods.
type Recorder struct {
	begun time.Time

	mu sync.Mutex // guards h
	h  History
}

// NewRecorder returns a Recorder for a history that starts at begun.
func NewRecorder(begun time.Time) *Recorder { return &Recorder{begun: begun} }

// Since returns the time in the history at now.
func (r *Recorder) Since(now time.Time) time.Duration { return now.Sub(r.begun) }

// Write records a write that has just returned.
func (r *Recorder) Write(from time.Time, all bool, changes ...Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Writes = append(r.h.Writes, Write{From: r.Since(from), To: r.Since(time.Now()), Changes: changes, All: all})
}

// See records changes that an observer sees now.
func (r *Recorder) See(who string, all bool, changes ...Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Seen = append(r.h.Seen, Seen{At: r.Since(time.Now()), Who: who, Changes: changes, All: all})
}

// History returns the history up to now.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{Writes: slices.Clone(r.h.Writes), Seen: slices.Clone(r.h.Seen)}
}

package faults

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A Southbound is a map of texts by name. It counts the differences to the expected texts
// at each verb, so waiting costs the same for any number of names.
type Southbound struct {
	record func(history.Change) error // runs before each verb; an error fails the verb
	// unknown: Retrieve does not show the owner of an item, like most of VPP.
	unknown bool
	answers time.Duration // time from a verb's effect to its return

	mu    sync.Mutex // guards the fields below
	has   map[string]string
	want  map[string]string
	wrong int // number of names that differ from want; valid while want is set
	verbs int
	last  time.Time // of the last verb
	equal chan struct{}
	held  chan struct{} // closed: verbs run
}

// newSouthbound returns a southbound with content. It keeps has; verbs run from the start.
func newSouthbound(has map[string]string, record func(history.Change) error) *Southbound {
	s := &Southbound{record: record, has: has, held: make(chan struct{})}
	close(s.held)
	return s
}

// register registers the descriptor of the one model.
func (s *Southbound) register(sched *scheduler.Scheduler) error {
	type none = struct{}
	type item = *interfaces.Interface
	name := func(v item) string { return v.GetName() }
	_, err := scheduler.Register(sched, scheduler.Descriptor[item, none]{
		Name:  "model",
		Model: models.For[item](),
		Create: func(_ context.Context, _ string, v item) (none, error) {
			return none{}, s.do(history.Change{Key: name(v), Text: v.GetHostIfName()})
		},
		Update: func(_ context.Context, _ string, _, v item, _ none) (none, error) {
			return none{}, s.do(history.Change{Key: name(v), Text: v.GetHostIfName()})
		},
		Delete: func(_ context.Context, _ string, v item, _ none) error {
			return s.do(history.Change{Key: name(v)})
		},
		Retrieve: func(context.Context, []scheduler.Desired[item]) scheduler.Retrieved[item, none] {
			return func(yield func(scheduler.Found[item, none], error) bool) {
				for name, text := range s.Has() {
					if !yield(scheduler.Found[item, none]{Value: stores.MessageOf(name, text), OwnerUnknown: s.unknown}, nil) {
						return
					}
				}
			}
		},
	})
	return err
}

// do executes every verb.
func (s *Southbound) do(c history.Change) error {
	s.await()
	if s.answers > 0 {
		// After the effect, and without the lock: other verbs go on meanwhile.
		defer func() { <-time.After(s.answers) }()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.record(c); err != nil {
		return err
	}
	before := s.has[c.Key]
	s.has[c.Key] = c.Text
	if c.Text == "" {
		delete(s.has, c.Key)
	}
	s.verbs++
	s.last = time.Now()
	if s.want != nil {
		// Only this name can have changed.
		s.wrong += differs(c.Text, s.want[c.Key]) - differs(before, s.want[c.Key])
		s.tell()
	}
	return nil
}

// differs returns 1 if the texts differ, so that differences can be summed up.
func differs(a, b string) int {
	if a == b {
		return 0
	}
	return 1
}

// tell closes the channel of Expect as soon as nothing differs. The caller holds mu.
func (s *Southbound) tell() {
	if s.wrong == 0 {
		close(s.equal)
		s.want = nil
	}
}

// Expect returns a channel that is closed as soon as the texts equal want.
func (s *Southbound) Expect(want map[string]string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want, s.equal, s.wrong = maps.Clone(want), make(chan struct{}), 0
	for name, text := range want {
		s.wrong += differs(text, s.has[name])
	}
	for name := range s.has {
		if want[name] == "" {
			s.wrong++
		}
	}
	equal := s.equal
	s.tell()
	return equal
}

// Has returns the texts by name.
func (s *Southbound) Has() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.has)
}

// Verbs returns the number of verbs so far, and the time of the last one.
func (s *Southbound) Verbs() (int, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verbs, s.last
}

// Hold delays all verbs until release is called.
func (s *Southbound) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.held = held
	return func() { close(held) }
}

// await waits while verbs are held. It takes the lock only to read the channel.
func (s *Southbound) await() {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	<-held
}

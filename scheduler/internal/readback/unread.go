package readback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

const (
	// firstRepeat and lastRepeat bound the pause before descriptors that could not be read back are read again.
	firstRepeat = time.Second
	lastRepeat  = time.Minute
)

// unread are the descriptors whose last Retrieve has failed. They are read again after a pause, which
// grows until all of them have been read. Any goroutine may use it.
type unread struct {
	again func(descriptors ...string)

	mu    sync.Mutex // guards the fields below
	why   map[string]error
	pause backoff.Backoff
	soon  bool // repeat comes
}

func newUnread(again func(...string)) *unread {
	return &unread{again: again, why: map[string]error{}, pause: backoff.Backoff{Min: firstRepeat, Max: lastRepeat}}
}

// add adds a descriptor that could not be read back, and reports whether that is news: not if it has failed
// with the same error last time. An abandoned call is not repeated here: its late return asks for that.
func (u *unread) add(name string, why error) (news bool) {
	if errors.Is(why, context.Canceled) { // nobody waits for it
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.why[name]
	u.why[name] = why
	if !u.soon && !isAbandoned(why) {
		u.soon = true
		time.AfterFunc(u.pause.Next(), u.repeat)
	}
	return before == nil || before.Error() != why.Error()
}

// isAbandoned reports whether a call is still running that is read again when it returns.
func isAbandoned(err error) bool {
	return errors.Is(err, executor.ErrNoAnswer) || errors.Is(err, executor.ErrStalled)
}

// repeat has all descriptors read again that no late return will.
func (u *unread) repeat() {
	u.mu.Lock()
	u.soon = false
	names := u.repeated()
	u.mu.Unlock()
	if len(names) > 0 {
		u.again(names...)
	}
}

// repeated returns the descriptors that no late return will have read again. The caller holds mu.
func (u *unread) repeated() (names []string) {
	for name, why := range u.why {
		if !isAbandoned(why) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// remove removes a descriptor that was read back.
func (u *unread) remove(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.why, name)
	if len(u.repeated()) == 0 {
		u.pause.Reset()
	}
}

// before returns the reason why a descriptor cannot be read back: another one of its connection, which has to be read
// before it, was not. Its Retrieve would find too little, and what it does not find counts as gone. nil: it can.
func (u *unread) before(d *kind.Descriptor, all []*kind.Descriptor) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.why) == 0 {
		return nil
	}
	for _, o := range all {
		name := o.Name
		if o.Connection != d.Connection || !slices.Contains(d.After, name) {
			continue
		}
		if why := u.why[name]; why != nil {
			return fmt.Errorf("not asked, because %s was not read back: %w", name, why)
		}
	}
	return nil
}

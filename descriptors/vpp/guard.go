package vpp

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/scheduler"
)

var (
	// ErrSuspect is why a value waits that was being worked at when VPP died: all else is
	// restored first.
	ErrSuspect = errors.New("VPP died while this was done: it is tried again alone, after all else")
	// ErrQuarantined is why a value is not tried any more.
	ErrQuarantined = errors.New("not tried again until it changes, or is deleted and declared anew")
)

// A guard keeps a value that VPP does not survive from taking it down forever: what was
// under way when VPP died is done last and alone, and after the third time not at all.
type guard struct {
	alone sync.RWMutex // held for writing by the verb of a suspect, for reading by all others

	mu       sync.Mutex // guards what follows
	suspects suspects
}

func newGuard() *guard { return &guard{suspects: suspects{byKey: map[string]*suspect{}}} }

// reborn is called when VPP is there again, before anything is asked of it.
func (g *guard) reborn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspects.life++
}

// do calls a verb, or refuses.
func (g *guard) do(key string, value proto.Message, verb func() error) error {
	g.mu.Lock()
	is, deaths := g.suspects.judge(key, value)
	g.mu.Unlock()
	switch is {
	case putOff:
		return ErrSuspect
	case quarantined:
		return scheduler.Terminal(fmt.Errorf("VPP died %d times while this was done: %w", deaths, ErrQuarantined))
	}
	err := g.call(is == alone, verb)
	if died := errors.Is(err, conn.ErrCut); died || is == alone {
		g.mu.Lock()
		g.suspects.tried(key, value, died)
		g.mu.Unlock()
	}
	return err
}

func (g *guard) call(alone bool, verb func() error) error {
	if alone {
		g.alone.Lock()
		defer g.alone.Unlock()
		return verb()
	}
	g.alone.RLock()
	defer g.alone.RUnlock()
	return verb()
}

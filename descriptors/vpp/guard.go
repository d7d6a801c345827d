package vpp

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/scheduler"
)

var (
	// ErrSuspect is the error of a value whose verb was running when VPP died. It waits
	// until all others are restored.
	ErrSuspect = errors.New("VPP died while this was done: it is tried again alone, after all else")
	// errNotAlone is the error of a suspect that did not get its turn alone.
	errNotAlone = fmt.Errorf("VPP died while this was done; it is to be tried alone, but other operations have not ended within %v", longestTurn)
	// ErrQuarantined is the error of a value that is not tried any more.
	ErrQuarantined = errors.New("not tried again until it changes, or somebody says agentctl values retry KEY")
)

// A guard prevents that one value crashes VPP again and again. A value whose verb was
// running when VPP died is applied last and alone. After the third death it is
// quarantined.
type guard struct {
	turns turns // the verb of a suspect runs alone

	memory scheduler.Memory // nil: none
	log    *slog.Logger

	mu       sync.Mutex // guards the fields below
	suspects suspects
}

// newGuard returns a guard with the suspects of the memory.
func newGuard(memory scheduler.Memory, log *slog.Logger) *guard {
	g := &guard{turns: newTurns(), memory: memory, log: log, suspects: suspects{byKey: map[string]*suspect{}}}
	g.recall()
	return g
}

// reborn is called when VPP is connected again, before any request. same says that it is
// the same process as before, so no value has harmed it.
func (g *guard) reborn(same bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if same {
		for _, key := range g.suspects.alive() {
			g.remember(key)
		}
	}
	g.suspects.life++
}

// do calls a verb, or refuses.
func (g *guard) do(key string, value proto.Message, verb func() error) error {
	is, deaths := g.permit(key, value)
	switch is {
	case putOff:
		return ErrSuspect
	case quarantined:
		return scheduler.Terminal(fmt.Errorf("VPP died %d times while this was done: %w", deaths, ErrQuarantined))
	case free, alone: // it may run
	}
	end, ok := g.turns.take(is == alone)
	defer end()
	if !ok && is == alone {
		return errNotAlone
	}
	err := verb() // without its turn, if it has waited long enough for a suspect
	if died := errors.Is(err, conn.ErrCut); died || is == alone {
		g.tried(key, value, died)
	}
	return err
}

// doAll calls the verbs of several values. It refuses while there are suspects, because
// each value must be permitted by itself then.
func (g *guard) doAll(values []scheduler.KeyValue, verbs func() []error) bool {
	if g.suspicious() {
		return false
	}
	end, _ := g.turns.take(false)
	errs := verbs()
	end()
	for i, v := range values {
		if errors.Is(errs[i], conn.ErrCut) {
			g.tried(v.Key, v.Value, true)
		}
	}
	return true
}

// suspicious reports whether there is any suspect. Without one, verbs take the fast way.
func (g *guard) suspicious() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.suspects.byKey) > 0
}

// permit returns whether a verb may run, and how often VPP died while it did. A suspect
// that is free again is also removed from the memory.
func (g *guard) permit(key string, value proto.Message) (is permission, deaths int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	suspect := g.suspects.byKey[key] != nil
	is, deaths = g.suspects.permit(key, value)
	if suspect && is == free {
		g.remember(key)
	}
	return is, deaths
}

// tried notes the outcome of a suspect's verb, also for the next start of the agent.
func (g *guard) tried(key string, value proto.Message, died bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspects.tried(key, value, died)
	g.remember(key)
}

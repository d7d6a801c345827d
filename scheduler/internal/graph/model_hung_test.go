package graph

import (
	"errors"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// hangs says that a detached or abandoned operation of key still runs, or of what is derived
// from it.
func (m *model) hangs(key string) bool { return m.isHung(key) || m.isHung("d/"+key) }

func (m *model) isHung(key string) bool {
	_, late := m.hung[key]
	_, slow := m.detached[key]
	return late || slow
}

// abandon has an operation take too long.
func (m *model) abandon(op Op) {
	m.t.Logf("##   %v %s is abandoned", op.Verb, op.Node.Key())
	m.g.Abandon(op, errors.New("no answer"))
	delete(m.detached, op.Node.Key())
	m.hung[op.Node.Key()], m.unclear = op, true
}

// postpone has an operation not begin. It is retried like one that fails.
func (m *model) postpone(op Op) {
	key := op.Node.Key()
	m.t.Logf("##   %v %s is postponed", op.Verb, key)
	m.broken[key], m.postponed[key], m.unclear = true, true, true
	if op.Verb == value.Create {
		m.forget(key)
	}
	m.g.Postpone(op, errors.New("stalled"))
	delete(m.detached, key)
}

// detach has an operation take so long that others no longer wait for it.
func (m *model) detach(op Op) {
	m.t.Logf("##   %v %s is detached", op.Verb, op.Node.Key())
	m.g.Detach(op)
	m.detached[op.Node.Key()], m.unclear = op, true
}

// returnOne has a slow operation end in one way or the other, or be abandoned.
func (m *model) returnOne(t *rapid.T) {
	keys := slices.Concat(slices.Sorted(maps.Keys(m.hung)), slices.Sorted(maps.Keys(m.detached)))
	if len(keys) == 0 {
		return
	}
	key := rapid.SampledFrom(keys).Draw(t, "returns")
	op, slow := m.detached[key]
	switch {
	case !slow:
		m.returned(key)
	case rapid.Bool().Draw(t, "late"):
		m.abandon(op)
	case rapid.Bool().Draw(t, "not begun"):
		m.postpone(op)
	default:
		delete(m.detached, key)
		m.finish(op)
	}
}

func (m *model) returnAll() {
	for _, key := range slices.Sorted(maps.Keys(m.hung)) {
		m.returned(key)
	}
	for _, key := range slices.Sorted(maps.Keys(m.detached)) {
		op := m.detached[key]
		delete(m.detached, key)
		m.finish(op)
	}
}

func (m *model) returned(key string) {
	op := m.hung[key]
	delete(m.hung, key)
	m.t.Logf("## %v %s returns, broken=%v", op.Verb, key, m.broken[key])
	if m.broken[key] {
		if op.Verb == value.Create {
			m.forget(key)
		}
		m.g.Returned(op, nil, errors.New("broken"))
		return
	}
	m.southbound(op)
	m.g.Returned(op, nil, nil)
}

// readOrEnd begins or ends the read-back of a connection.
func (m *model) readOrEnd(t *rapid.T) {
	line := rapid.SampledFrom(lines[:]).Draw(t, "line")
	if line.Lost() {
		return
	}
	if line.Phase() == link.Up {
		t.Logf("## begin to read %p", line)
		m.g.BeginRead(line)
	} else {
		t.Logf("## end to read %p", line)
		m.g.EndRead(line)
	}
}

// mayBeginBeside checks that an operation begins neither while its connection is read back,
// nor beside a detached one of the opposite direction there.
func (m *model) mayBeginBeside(op Op) {
	key := op.Node.Key()
	if other, slow := m.detached[key]; slow {
		m.t.Fatalf("%v %s while %v of it is detached", op.Verb, key, other.Verb)
	}
	line := lineOf(key)
	if line == nil {
		return
	}
	if line.Phase() != link.Up {
		m.t.Fatalf("%v %s while its connection is read back, or lost", op.Verb, key)
	}
	if groupsKnown[groupOf(key)].Unknown() {
		m.t.Fatalf("%v %s while its kind is unknown", op.Verb, key)
	}
	if running := line.Running(); line.Limit > 0 && running > line.Limit {
		m.t.Fatalf("%v %s is one of %d operations at once; the limit is %d", op.Verb, key, running, line.Limit)
	}
	for other, slow := range m.detached {
		if lineOf(other) == line && (slow.Verb == value.Delete) != (op.Verb == value.Delete) {
			m.t.Fatalf("%v %s while %v %s is detached", op.Verb, key, slow.Verb, other)
		}
	}
}

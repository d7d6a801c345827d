package graph

import (
	"errors"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// hangs says that an abandoned operation of key still runs, or of what is derived from it.
func (m *model) hangs(key string) bool {
	_, own := m.hung[key]
	_, part := m.hung["d/"+key]
	return own || part
}

// abandon has an operation take too long.
func (m *model) abandon(op Op) {
	m.t.Logf("##   %v %s is abandoned", op.Verb, op.Node.Key())
	m.g.Abandon(op, errors.New("no answer"))
	m.hung[op.Node.Key()] = op
}

// returnOne has an abandoned operation end, in one way or the other.
func (m *model) returnOne(t *rapid.T) {
	if keys := slices.Sorted(maps.Keys(m.hung)); len(keys) > 0 {
		m.returned(rapid.SampledFrom(keys).Draw(t, "returns"))
	}
}

func (m *model) returnAll() {
	for _, key := range slices.Sorted(maps.Keys(m.hung)) {
		m.returned(key)
	}
}

func (m *model) returned(key string) {
	op := m.hung[key]
	delete(m.hung, key)
	m.t.Logf("## %v %s returns, broken=%v", op.Verb, key, m.broken[key])
	if m.broken[key] {
		if op.Verb == Create {
			m.forget(key)
		}
		m.g.Returned(op, nil, errors.New("broken"))
		return
	}
	m.southbound(op)
	m.g.Returned(op, nil, nil)
}

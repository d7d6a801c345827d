package graph

import (
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// lose has a connection be lost. If nothing else is to be done, that causes no operation, and no value of another
// connection changes its state.
func (m *model) lose(t *rapid.T) {
	line := rapid.SampledFrom(lines[:]).Draw(t, "line")
	settled := rapid.Bool().Draw(t, "settled")
	if settled {
		m.mend()
	}
	m.returnAll()
	if line.Lost() {
		return
	}
	t.Logf("## lose %p", line)
	m.g.Disconnect(line, "lost")
	if settled {
		m.nothingHappens(line)
	}
	for _, key := range slices.Sorted(maps.Keys(m.stands)) {
		if lineOf(key) == line && rapid.IntRange(0, 3).Draw(t, "vanishes") == 0 {
			t.Logf("## %s vanishes meanwhile", key)
			delete(m.stands, key)
			delete(m.stands, "d/"+key)
		}
	}
}

// nothingHappens checks that no operation can run, and that no applied values of other connections have changed.
// What pending values wait for may change.
func (m *model) nothingHappens(line *Connection) {
	op, ok := m.g.Next()
	if ok {
		m.t.Fatalf("%v %s, because a connection was lost", op.Verb, op.Node.Key())
	}
	for n := range m.g.Changed(0) {
		if lineOf(n.key) != line && n.State() == Configured {
			m.t.Fatalf("%s changed, because a connection was lost", n.key)
		}
	}
}

// forgetLine has a connection that is lost be gone for good. If nothing else is to be done, what depends on its
// values elsewhere is deleted, and nothing else happens than what follows from that.
func (m *model) forgetLine(t *rapid.T) {
	line := rapid.SampledFrom(lines[:]).Draw(t, "line")
	settled := rapid.Bool().Draw(t, "settled")
	if settled {
		m.mend()
		m.g.Disconnect(line, "lost")
	}
	m.returnAll()
	if !line.Lost() {
		return
	}
	t.Logf("## forget %p", line)
	for _, n := range m.g.nodesOf(line) {
		if n.actual != nil { // what was down before keeps its precedence
			m.forget(n.key)
		}
		delete(m.stands, n.key)
	}
	m.g.Forget(line)
	for n := range m.g.nodes.All() {
		if lineOf(n.key) == line && (n.actual != nil || n.Unknown()) {
			t.Fatalf("%s is not gone with its connection", n.key)
		}
	}
	if !settled {
		return
	}
	m.calm = true
	m.run(t)
	m.calm = false
	for n := range m.g.nodes.All() {
		if n.actual != nil && n.actual.unmet > 0 {
			t.Fatalf("%s stands on what is gone for good", n.key)
		}
	}
}

// join has a connection that was lost, or kinds that are unknown, read back. Some kinds cannot be read.
func (m *model) join(t *rapid.T) {
	line := rapid.SampledFrom(lines[:]).Draw(t, "line")
	if line.Phase() == link.Reading {
		return
	}
	m.joinLine(line, func(group int) bool { return rapid.IntRange(0, 3).Draw(t, "fails") > 0 })
}

// joinLine reads back the unknown kinds of a connection, but for those that fail.
func (m *model) joinLine(line *Connection, works func(group int) bool) {
	m.t.Logf("## join %p", line)
	m.g.BeginRead(line)
	for group, k := range groupsKnown {
		if lines[group%2] != line || !k.Unknown() {
			continue
		}
		of := kind{known: k}
		if !works(group) {
			m.g.Unread(of, "interrupted")
			continue
		}
		m.t.Logf("## read group %d", group)
		for _, n := range m.g.sorted(m.g.Of(of)) {
			if n.actual != nil && !m.stands[n.key] && !m.isHung(n.key) {
				m.forget(n.key)
			}
			switch {
			case n.actual == nil || n.base != nil || m.hangs(n.key):
			case m.stands[n.key]:
				m.g.Found(made(n.key, m.actualText(n)), nil, false)
			default:
				m.g.NotFound(n.key)
			}
		}
		m.g.Known(of)
	}
	m.g.EndRead(line)
}

// actualText is the text of what stands, with those derived values that stand. The text of the graph lacks a derived value
// that is not declared any more.
func (m *model) actualText(n *Node) string {
	text, part := m.respelled(n), m.g.Node("d/"+n.key)
	if !m.stands["d/"+n.key] || strings.Contains(text, "derive=") || part == nil || part.actual == nil {
		return text
	}
	return text + ",derive=" + part.key + ":" + strings.ReplaceAll(part.actual.Data.(string), ",", ";")
}

// isUnknown says that nobody knows whether a key stands.
func (m *model) isUnknown(key string) bool {
	n := m.g.Node(key)
	return n != nil && n.Unknown()
}

// mayStand says that a dependency may be met by something that is unknown. The values of a group may be shown by those
// of another group of the connection, so all of its groups must be known. Where any key of a folder counts, there may be
// one that nobody has heard of.
func (m *model) mayStand(d *value.Dep) bool {
	for group := range groupsKnown {
		unknown := lines[group%2].AnyUnknown()
		for i := range perGroup {
			for _, key := range []string{keyIn(group, i), "d/" + keyIn(group, i)} {
				n := m.g.Node(key)
				if unknown && d.MetBy(key) && (d.Any != nil || n == nil || n.Unknown() || n.kind() == nil && !n.sighted) {
					return true
				}
			}
		}
	}
	return false
}

// nothingOutlives checks, when nothing fails or hangs, that each value that is known to exist has its dependencies:
// they exist, or nobody knows whether they do. Members of a cycle, what waits for a read-back, and what others depend on that
// may not be deleted now are excepted.
func (m *model) nothingOutlives() {
	if m.unclear || len(m.broken) > 0 || m.g.Awaiting() {
		return
	}
	for n := range m.g.nodes.All() {
		if n.desired == nil || n.actual == nil || n.Unknown() || n.kindUnknown() || n.suspended() || m.waitsForRead(n) || m.isKept(n, map[*Node]bool{}) {
			continue
		}
		for i := range n.actual.Deps {
			d := &n.actual.Deps[i]
			met := false
			for key := range m.stands {
				met = met || d.MetBy(key)
			}
			if !met && !m.mayStand(d) {
				m.t.Fatalf("%s outlives %s, which is known to be missing", n.key, d.Label)
			}
		}
	}
}

// waitsForRead says that n cannot leave before others that depend on it were read back.
func (m *model) waitsForRead(n *Node) bool {
	return slices.ContainsFunc(n.in(), func(e *edge) bool { return e.ofActual() && e.v.node.kindUnknown() })
}

// isKept says that n has a dependent that may not be deleted now: it was found and nobody has declared it, or it is suspended.
func (m *model) isKept(n *Node, visited map[*Node]bool) bool {
	if visited[n] {
		return false
	}
	visited[n] = true
	return slices.ContainsFunc(n.in(), func(e *edge) bool {
		d := e.v.node
		return e.ofActual() && (d.desired == nil && !m.g.mayRemove(d) || d.suspended() || m.isKept(d, visited))
	})
}

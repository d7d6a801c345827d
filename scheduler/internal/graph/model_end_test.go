package graph

import (
	"maps"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// end mends everything, runs, and expects just what is possible of what is
// wanted to stand.
func (m *model) end() {
	m.mend()
	m.deserved()
	m.maximal()
	possible := m.possible()
	for key := range m.stands {
		if _, ok := possible[key]; !ok {
			m.t.Errorf("%s stands, but is not wanted or cannot be", key)
		}
	}
	for key, text := range possible {
		n := m.g.nodes.Get(key)
		if n == nil || n.actual == nil || n.State() != Configured {
			m.t.Errorf("%s does not stand, but could", key)
		} else if n.actual.Data != text {
			m.t.Errorf("%s is %v, wanted %s", key, n.actual.Data, text)
		}
	}
}

// mend leaves nothing that failed, or that nobody wants.
func (m *model) mend() {
	clear(m.broken)
	m.returnAll()
	for _, line := range lines {
		m.g.EndRead(line)
		m.joinLine(line, func(int) bool { return true })
	}
	m.calm = true
	defer func() { m.calm = false }()
	m.g.Complete()
	for _, n := range slices.Collect(m.g.nodes.All()) {
		m.g.Retry(n.key)
	}
	m.run(m.t)
}

// possible is the largest set of wanted values whose dependencies are in it, and that
// get what they claim.
func (m *model) possible() map[string]string {
	in := map[string]string{}
	bases := map[string]string{}
	for key, text := range m.wanted {
		in[key] = text
		for _, d := range made(key, text).Derived() {
			in[d.Key], bases[d.Key] = d.Data.(string), key
		}
	}
	m.withoutLosers(in)
	for before := -1; before != len(in); {
		before = len(in)
		maps.DeleteFunc(in, func(key, text string) bool {
			if base, ok := bases[key]; ok && in[base] == "" {
				return true
			}
			return slices.ContainsFunc(made(key, text).Deps, func(d value.Dep) bool { return !metIn(in, d) })
		})
	}
	return in
}

func metIn(in map[string]string, d value.Dep) bool {
	for key := range in {
		if d.MetBy(key) {
			return true
		}
	}
	return false
}

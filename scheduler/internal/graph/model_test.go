package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestModel drives a graph with random intent, failures and surprises, up to
// eight operations at once, and holds it to what the package promises.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, g: New(), wanted: map[string]string{}, stands: map[string]bool{}, broken: map[string]bool{}, had: map[string]*Value{}, stood: map[string]bool{}}
		t.Repeat(map[string]func(*rapid.T){
			"want":     m.want,
			"unwant":   m.unwant,
			"break":    func(t *rapid.T) { m.broken[anyKey(t)] = true },
			"lost":     m.lost,
			"found":    m.found,
			"run":      m.run,
			"plan":     m.plan,
			"complete": func(*rapid.T) { m.g.Complete() },
			"":         func(*rapid.T) {},
		})
		m.end()
	})
}

// keys are numbered; those of a group with a lower number can be any-of
// dependencies of those with a higher one.
const groups, perGroup = 4, 4

func keyIn(group, i int) string { return fmt.Sprintf("g%d/k%d", group, i) }

func anyKey(t *rapid.T) string {
	return keyIn(rapid.IntRange(0, groups-1).Draw(t, "group"), rapid.IntRange(0, perGroup-1).Draw(t, "i"))
}

// anyText draws a value for key: exact dependencies on its own and lower
// groups, so that rings happen, any-of dependencies on lower groups, derived
// values, recreation.
func anyText(t *rapid.T, key string) string {
	group := int(key[1] - '0')
	text := []string{rapid.SampledFrom([]string{"a", "A", "b", "c"}).Draw(t, "text")}
	for range rapid.IntRange(0, 2).Draw(t, "deps") {
		in := rapid.IntRange(0, group).Draw(t, "in")
		to := keyIn(in, rapid.IntRange(0, perGroup-1).Draw(t, "i"))
		if in < group && rapid.Bool().Draw(t, "on part") {
			to = "d/" + to
		}
		text = append(text, "dep="+to)
	}
	if group > 0 && rapid.Bool().Draw(t, "any") {
		text = append(text, fmt.Sprintf("any=g%d/", rapid.IntRange(0, group-1).Draw(t, "lower")))
	}
	if rapid.Bool().Draw(t, "derived") {
		text = append(text, "derive=d/"+key+":"+rapid.SampledFrom([]string{"x", "y", "x;claim=x", "y;claim=y"}).Draw(t, "part"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "claims") {
		sort := rapid.SampledFrom([]string{"claim", "claim", "yield"}).Draw(t, "sort")
		text = append(text, sort+"="+rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "what"))
	}
	if rapid.IntRange(0, 3).Draw(t, "recreate") == 0 {
		text = append(text, "recreate")
	}
	return strings.Join(text, ",")
}

type model struct {
	t      *rapid.T
	g      *Graph
	wanted map[string]string // base values
	stands map[string]bool   // in the southbound
	broken map[string]bool
	had    map[string]*Value // what stood last, where all that it claims is claimed since
	stood  map[string]bool   // and where some is
}

func (m *model) want(t *rapid.T) {
	key := anyKey(t)
	text := anyText(t, key)
	m.wanted[key] = text
	t.Logf("## want %s %s", key, text)
	m.g.Want(value(key, text))
	m.edited()
}

func (m *model) unwant(t *rapid.T) {
	key := anyKey(t)
	delete(m.wanted, key)
	t.Logf("## unwant %s", key)
	m.g.Unwant(key)
	m.edited()
}

func (m *model) lost(t *rapid.T) {
	key := anyKey(t)
	m.vanish(key)
	m.vanish("d/" + key)
	t.Logf("## lost %s", key)
	m.g.Lost(key)
}

func (m *model) found(t *rapid.T) {
	key := anyKey(t)
	v := value(key, anyText(t, key))
	t.Logf("## found %s %s", key, v.Data)
	m.stands[key] = true
	m.has(v)
	m.vanish("d/" + key)
	for _, d := range v.Derived {
		m.stands[d.Key] = true
		m.has(d)
	}
	m.g.Found(v, nil, false)
}

func (m *model) run(t *rapid.T) {
	width := rapid.IntRange(1, 8).Draw(t, "width")
	var flight []Op
	for {
		for len(flight) < width {
			op, ok := m.g.Next()
			if !ok {
				break
			}
			m.mayRun(op, flight)
			flight = append(flight, op)
		}
		m.nobodyIsOusted()
		if len(flight) == 0 {
			break
		}
		i := rapid.IntRange(0, len(flight)-1).Draw(t, "done")
		m.finish(flight[i])
		flight = slices.Delete(flight, i, i+1)
	}
	if op, ok := m.g.Next(); ok {
		t.Fatalf("after the end: %v %s", op.Verb, op.Node.Key())
	}
	for range m.g.Touched() {
	}
	m.sameAsSouthbound()
}

// plan thinks of a change, which must leave no trace, and then makes it: it ends
// as planned, if nothing fails.
func (m *model) plan(t *rapid.T) {
	m.mend()
	wants := map[string]string{} // empty: nothing
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		key := anyKey(t)
		if wants[key] = ""; rapid.Bool().Draw(t, "wanted") {
			wants[key] = anyText(t, key)
		}
	}
	before := m.dump()
	m.g.Begin()
	m.change(wants)
	m.all(func(Op) {})
	planned := m.states()
	m.g.Rollback()
	if after := m.dump(); after != before {
		t.Fatalf("planning changed\n%s\ninto\n%s", before, after)
	}
	m.counts()
	m.change(wants)
	m.edited()
	maps.Copy(m.wanted, wants)
	maps.DeleteFunc(m.wanted, func(_, text string) bool { return text == "" })
	m.all(func(op Op) {
		m.mayRun(op, nil)
		m.southbound(op)
	})
	m.nobodyIsOusted()
	if done := m.states(); planned != done {
		t.Fatalf("planned\n%s\ndone\n%s", planned, done)
	}
}

func (m *model) change(wants map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(wants)) {
		m.t.Logf("## change %s to %q", key, wants[key])
		if text := wants[key]; text != "" {
			m.g.Want(value(key, text))
		} else {
			m.g.Unwant(key)
		}
	}
}

// all runs all that can run, successfully.
func (m *model) all(do func(Op)) {
	for op, ok := m.g.Next(); ok; op, ok = m.g.Next() {
		do(op)
		m.g.Done(op, nil, nil)
	}
}

// states is what people see of a graph, sorted.
func (m *model) states() string {
	return m.lines(func(n *Node) string { return "" })
}

// dump is all that a graph knows, sorted.
func (m *model) dump() string {
	return m.lines(func(n *Node) string {
		return fmt.Sprintf(" err=%v rest=%v release=%v missing=%v last=%v tenure=%v", n.err, n.rest, n.release, n.missing, n.last, n.tenure)
	})
}

func (m *model) lines(more func(*Node) string) string {
	var out []string
	for key, n := range m.g.nodes {
		if n.want == nil && n.have == nil && n.rejected == nil {
			continue
		}
		line := key + " " + stateNames[n.State()] + more(n)
		for _, v := range []*Value{n.Want(), n.Have()} {
			if v != nil {
				line += fmt.Sprintf(" %v", v.Data)
			}
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (m *model) southbound(op Op) {
	if op.Verb == Delete {
		delete(m.stands, op.Node.Key())
		m.review(op.Node)
	} else {
		m.stands[op.Node.Key()] = true
		m.has(op.New)
	}
}

func (m *model) finish(op Op) {
	key := op.Node.Key()
	m.t.Logf("##   %v %s broken=%v", op.Verb, key, m.broken[key])
	if m.broken[key] {
		if op.Verb == Create {
			m.forget(key)
		}
		m.g.Done(op, nil, errors.New("broken"))
		return
	}
	m.southbound(op)
	m.g.Done(op, nil, nil)
}

// mayRun checks that an operation runs only while what it needs stands and
// nothing that stands needs what it removes; members of a ring excepted.
func (m *model) mayRun(op Op, flight []Op) {
	key := op.Node.Key()
	for _, other := range flight {
		if other.Node.Key() == key {
			m.t.Fatalf("%v %s while %v of it is in flight", op.Verb, key, other.Verb)
		}
		if (other.Verb == Delete) != (op.Verb == Delete) {
			m.t.Fatalf("%v %s while %v %s is in flight", op.Verb, key, other.Verb, other.Node.Key())
		}
	}
	if op.Verb != Delete {
		m.needs(op)
		return
	}
	for _, user := range op.Node.Dependents() {
		if u := m.g.Node(user); u.ring == nil || u.ring != op.Node.ring {
			m.t.Fatalf("delete %s while %s stands on it", key, user)
		}
	}
}

func (m *model) needs(op Op) {
	for _, d := range op.New.Deps {
		met := false
		for key := range m.stands {
			met = met || d.MetBy(key)
		}
		if to := m.g.Node(d.Key); !met && (to == nil || to.ring == nil || to.ring != op.Node.ring) {
			m.t.Fatalf("%v %s while %s does not stand", op.Verb, op.Node.Key(), d.Label)
		}
	}
	for _, n := range m.g.nodes {
		if n != op.Node && n.have != nil && rivals(op.New, n.have.Value) {
			m.t.Fatalf("%v %s while %s has what it claims", op.Verb, op.Node.Key(), n.key)
		}
	}
	if b := op.Node.base; b != nil && !m.stands[b.key] {
		m.t.Fatalf("%v %s while its base does not stand", op.Verb, op.Node.Key())
	}
}

func (m *model) sameAsSouthbound() {
	for key, n := range m.g.nodes {
		if (n.have != nil) != m.stands[key] {
			m.t.Fatalf("%s: graph says stands=%v, southbound %v", key, n.have != nil, m.stands[key])
		}
	}
	for key := range m.stands {
		if m.g.nodes[key] == nil {
			m.t.Fatalf("%s stands, but the graph does not know it", key)
		}
	}
	m.counts()
}

// counts checks the numbers that the graph keeps against the edges they count.
func (m *model) counts() {
	for key, n := range m.g.nodes {
		var users int32
		for i, e := range n.in {
			if e.to != n || int(e.pos) != i {
				m.t.Fatalf("%s: edge %d says it is edge %d of %s", key, i, e.pos, e.to.key)
			}
			if e.uses() {
				users++
			}
		}
		if of := m.g.Of(kind{}); n.want != nil && of[n.place] != n {
			m.t.Fatalf("%s is not among those of its kind", key)
		}
		if users != n.users {
			m.t.Fatalf("%s: %d users, counted %d", key, users, n.users)
		}
		for _, v := range []*version{n.want, n.have} {
			if v == nil {
				continue
			}
			var unmet int32
			for i := range v.edges {
				if !v.edges[i].met {
					unmet++
				}
			}
			if unmet != v.unmet {
				m.t.Fatalf("%s: %d unmet, counted %d", key, unmet, v.unmet)
			}
		}
	}
}

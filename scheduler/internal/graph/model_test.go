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
		n := m.g.nodes[key]
		if n == nil || n.have == nil || n.State() != Configured {
			m.t.Errorf("%s does not stand, but could", key)
		} else if n.have.Data != text {
			m.t.Errorf("%s is %v, wanted %s", key, n.have.Data, text)
		}
	}
}

// mend leaves nothing that failed, or that nobody wants.
func (m *model) mend() {
	clear(m.broken)
	m.g.Complete()
	for n := range maps.Clone(m.g.nodes) {
		m.g.Retry(n)
	}
	m.run(m.t)
}

// rivals says that a and b cannot both stand.
func rivals(a, b *Value) bool {
	for _, x := range a.claims() {
		for _, y := range b.claims() {
			if x.Of == y.Of && !(x.Yields && y.Yields) {
				return true
			}
		}
	}
	return false
}

// withoutLosers drops those that lose what they claim.
func (m *model) withoutLosers(in map[string]string) {
	losers := losersOf(m.g)
	maps.DeleteFunc(in, func(key, _ string) bool { return losers[key] })
}

func losersOf(g *Graph) map[string]bool {
	out := map[string]bool{}
	for key, n := range g.nodes {
		if n.Loses() {
			out[key] = true
		}
	}
	return out
}

func (m *model) has(v *Value) {
	m.had[v.Key] = v
	m.stood[v.Key] = true
}

func (m *model) vanish(key string) {
	if m.stands[key] {
		m.forget(key)
	}
	delete(m.stands, key)
}

func (m *model) forget(key string) {
	delete(m.had, key)
	delete(m.stood, key)
}

// edited looks again at who was taken down for a while.
func (m *model) edited() {
	for key := range m.stood {
		if n := m.g.nodes[key]; n == nil {
			m.forget(key)
		} else if n.have == nil {
			m.review(n)
		}
	}
}

// review forgets what n had, if it does not stand and is wanted to claim something else.
func (m *model) review(n *Node) {
	switch {
	case n.want == nil:
		m.forget(n.key)
	case !m.holds(n) || len(n.want.claims()) != len(m.had[n.key].claims()):
		delete(m.had, n.key)
	default:
		m.had[n.key] = n.want.Value // and no more than it claims now
	}
}

// holds says that n had all that it claims.
func (m *model) holds(n *Node) bool {
	had := m.had[n.key]
	if had == nil {
		return false
	}
	for _, c := range n.want.claims() {
		if !slices.ContainsFunc(had.claims(), func(h Claim) bool { return h.Of == c.Of && (c.Yields || !h.Yields) }) {
			return false
		}
	}
	return true
}

// nobodyIsOusted checks that who loses has not had what he claims, unless the winner has too
// or he yields something; and that the winner claims it, and loses nothing himself.
func (m *model) nobodyIsOusted() {
	for _, n := range m.g.nodes {
		if !n.Loses() {
			continue
		}
		yields := slices.ContainsFunc(n.want.edges, func(e edge) bool { return e.isLost() && e.stake.Yields })
		for _, e := range n.want.edges {
			if !e.isLost() {
				continue
			}
			r := e.stake.rival
			if r.want == nil || !greedyFor(e.stake.Of, r) {
				m.t.Fatalf("%s loses %s to %s, which does not claim it", n.key, e.stake.Of, r.key)
			}
			if e.stake.Yields {
				continue
			}
			if r.Loses() {
				m.t.Fatalf("%s loses %s to %s, which loses", n.key, e.stake.Of, r.key)
			}
			if !yields && m.holds(n) && !m.stood[r.key] {
				m.t.Fatalf("%s loses %s to %s, which is new to it", n.key, e.stake.Of, r.key)
			}
		}
		if n.have == nil {
			m.forget(n.key)
		}
	}
}

func greedyFor(of string, n *Node) bool {
	return slices.ContainsFunc(n.want.claims(), func(c Claim) bool { return c.Of == of && !c.Yields })
}

// maximal checks that no two have the same, and that who loses could not have it all.
func (m *model) maximal() {
	losers := losersOf(m.g)
	for key, n := range m.g.nodes {
		var rival bool
		for other, o := range m.g.nodes {
			if o == n || n.want == nil || o.want == nil || losers[other] && !yieldsToOne(n.want.Value, o.want.Value) {
				continue
			}
			rival = rival || greedyRivals(n.want.Value, o.want.Value) || yieldsToOne(n.want.Value, o.want.Value)
		}
		if rival != losers[key] {
			m.t.Errorf("%s loses=%v, but has a rival that does not: %v", key, losers[key], rival)
		}
	}
}

// deserved checks that of those that all claim anew the lowest keys win.
func (m *model) deserved() {
	g := New()
	in := map[string]string{}
	for key, text := range m.wanted { // in no order
		v := value(key, text)
		g.Want(v)
		for _, v := range append(v.Derived, v) {
			in[v.Key] = v.Data.(string)
		}
	}
	g.Judge()
	wins := map[string]*Value{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		v := value(key, in[key])
		loses := yieldsTo(v, in)
		for _, w := range wins {
			loses = loses || greedyRivals(v, w)
		}
		if !loses {
			wins[key] = v
		}
		if g.nodes[key].Loses() != loses {
			m.t.Errorf("from scratch %s loses=%v, want %v", key, !loses, loses)
		}
	}
}

func yieldsTo(v *Value, in map[string]string) bool {
	for key, text := range in {
		if key != v.Key && yieldsToOne(v, value(key, text)) {
			return true
		}
	}
	return false
}

// yieldsToOne says that a wants only together with others what b wants alone.
func yieldsToOne(a, b *Value) bool {
	for _, x := range a.claims() {
		for _, y := range b.claims() {
			if x.Of == y.Of && x.Yields && !y.Yields {
				return true
			}
		}
	}
	return false
}

func greedyRivals(a, b *Value) bool {
	for _, x := range a.claims() {
		for _, y := range b.claims() {
			if x.Of == y.Of && !x.Yields && !y.Yields {
				return true
			}
		}
	}
	return false
}

// possible is the largest set of wanted values whose dependencies are in it, and that
// get what they claim.
func (m *model) possible() map[string]string {
	in := map[string]string{}
	bases := map[string]string{}
	for key, text := range m.wanted {
		in[key] = text
		for _, d := range value(key, text).Derived {
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
			return slices.ContainsFunc(value(key, text).Deps, func(d Dep) bool { return !metIn(in, d) })
		})
	}
	return in
}

func metIn(in map[string]string, d Dep) bool {
	for key := range in {
		if d.MetBy(key) {
			return true
		}
	}
	return false
}

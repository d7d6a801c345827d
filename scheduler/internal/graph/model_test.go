package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// TestModel drives a graph with random intent, failures and surprises, up to
// eight operations at once, and holds it to what the package promises.
func TestModel(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"want":     m.want,
			"unwant":   m.unwant,
			"break":    func(t *rapid.T) { m.broken[anyKey(t)] = true },
			"mend":     m.mendOne,
			"lost":     m.lost,
			"flap":     func(t *rapid.T) { m.g.Suspend(anyKey(t), errors.New("it flaps")) },
			"found":    m.found,
			"run":      m.run,
			"return":   m.returnOne,
			"read":     m.readOrEnd,
			"lose":     m.lose,
			"join":     m.join,
			"forget":   m.forgetLine,
			"plan":     m.plan,
			"do":       m.planAndDo,
			"resync":   m.resync,
			"complete": func(*rapid.T) { m.g.Complete() },
			"revert":   m.revert,
			"":         func(*rapid.T) { m.holdersAreOthers() },
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
// groups, so that cycles happen, any-of dependencies on lower groups, derived
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
	// The same key can have values of several orders, like routes with and without references.
	if order := rapid.SampledFrom([]string{"", "beside", "beside", "last"}).Draw(t, "order"); order != "" {
		text = append(text, order)
	}
	return strings.Join(text, ",")
}

func newModel(t *rapid.T) *model {
	g := New()
	newLines(g)
	lines[1].Limit = rapid.IntRange(0, 3).Draw(t, "limit")
	g.Keys = keyKinds{}
	return &model{
		t: t, g: g, wanted: map[string]string{}, stands: map[string]bool{}, broken: map[string]bool{},
		had: map[string]*Value{}, stood: map[string]bool{}, hung: map[string]Op{}, detached: map[string]Op{}, postponed: map[string]bool{},
	}
}

type model struct {
	t      *rapid.T
	g      *Graph
	wanted map[string]string // base values
	stands map[string]bool   // in the southbound
	broken map[string]bool
	had    map[string]*Value // what stood last, where all that it claims is claimed since
	stood  map[string]bool   // and where some is
	doubts map[string]bool   // what had to go before the run, and did not
	came   map[string]*Value // what came in the run
	hung   map[string]Op     // abandoned, and not returned
	calm   bool              // nothing is detached or abandoned

	isEdited bool // the intent has changed since the last run

	detached map[string]Op // still running, and not abandoned yet
	unclear  bool          // an operation was abandoned, detached or postponed, until the end of a run without one

	postponed map[string]bool // not begun again
}

// inDoubt notes what had to go and did not, when a run begins. A new intent may have ended the reason, such
// as a lost claim, so the graph decides again first.
func (m *model) inDoubt() {
	if m.isEdited {
		m.g.drain()
	}
	m.isEdited = false
	m.doubts, m.came = map[string]bool{}, map[string]*Value{}
	for n := range m.g.nodes.All() {
		key := n.key
		m.doubts[key] = n.toDelete
	}
}

// comesForGood checks that nothing comes on what had to go before, only to leave again with it.
// That can be avoided only if the result of each operation is known.
func (m *model) comesForGood(op Op) {
	key := op.Node.Key()
	if op.Verb == value.Create {
		m.came[key] = op.New
	}
	doubted := m.doubts[key]
	delete(m.doubts, key) // it has been decided
	delete(m.postponed, key)
	if op.Verb != value.Delete || !doubted || m.unclear {
		return
	}
	for user, v := range m.came {
		if slices.ContainsFunc(v.Deps, func(d value.Dep) bool { return d.Key == key }) {
			m.t.Fatalf("%s came and left again, as %s has to go after all", user, key)
		}
	}
}

func (m *model) want(t *rapid.T) {
	key := anyKey(t)
	text := anyText(t, key)
	m.wanted[key] = text
	t.Logf("## want %s %s", key, text)
	m.g.Want(made(key, text))
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
	if m.hangs(key) || lineOf(key).Lost() {
		return // it does not count
	}
	m.vanish(key)
	m.vanish("d/" + key)
	t.Logf("## lost %s", key)
	m.g.Lost(key)
}

func (m *model) found(t *rapid.T) {
	key := anyKey(t)
	if m.hangs(key) || lineOf(key).Lost() {
		return
	}
	v := made(key, anyText(t, key))
	t.Logf("## found %s %s", key, v.Data)
	m.stands[key] = true
	m.has(v)
	m.vanish("d/" + key)
	for _, d := range v.Derived() {
		m.stands[d.Key] = true
		m.has(d)
	}
	m.g.Found(v, nil, false)
}

func (m *model) mendOne(t *rapid.T) {
	key := anyKey(t)
	delete(m.broken, key)
	m.g.Retry(key)
}

func (m *model) run(t *rapid.T) {
	width := rapid.IntRange(1, 8).Draw(t, "width")
	var flight []Op
	m.inDoubt()
	for {
		for len(flight) < width {
			op, ok := m.g.Next()
			if !ok {
				break
			}
			m.mayRun(op, flight)
			m.inOrder(op)
			m.comesForGood(op)
			flight = append(flight, op)
		}
		m.nobodyIsOusted()
		m.holdersAreOthers()
		if len(flight) == 0 {
			break
		}
		i := rapid.IntRange(0, len(flight)-1).Draw(t, "done")
		fate := rapid.IntRange(0, 9).Draw(t, "fate")
		switch {
		case !m.calm && fate == 0:
			m.abandon(flight[i])
		case !m.calm && fate == 1:
			m.detach(flight[i])
		case !m.calm && fate == 2:
			m.postpone(flight[i])
		default:
			m.finish(flight[i])
		}
		flight = slices.Delete(flight, i, i+1)
	}
	if op, ok := m.g.Next(); ok {
		t.Fatalf("after the end: %v %s", op.Verb, op.Node.Key())
	}
	for n := range m.g.Touched() {
		n.News = false
	}
	m.unclear = len(m.hung)+len(m.detached)+len(m.postponed) > 0
	m.sameAsSouthbound()
	m.nothingOutlives()
}

// plan plans a change at whatever point the graph is, with all that has failed. It must
// leave no trace, even if something fails meanwhile, or if it is interrupted.
func (m *model) plan(t *rapid.T) {
	wants := m.anyChange(t)
	refused, again := anyKey(t), anyKey(t)
	complete := rapid.Bool().Draw(t, "complete")
	m.g.BeginPlan(nil)
	m.g.Rollback() // what is possible and waits for room is classified again after each plan
	before := wholeState(m.g)
	m.g.BeginPlan(interruptAt(rapid.IntRange(0, 100).Draw(t, "steps before the interruption")))
	interruptible(func() {
		m.change(wants)
		m.g.Reject(refused, errors.New("refused"))
		m.g.Retry(again)
		if complete {
			m.g.Complete()
		}
		for op, ok := m.g.Next(); ok; op, ok = m.g.Next() {
			var err error
			if op.Node.Key() == again {
				err = errors.New("broken")
			}
			m.g.Done(op, 1, err)
		}
	})
	m.g.Rollback()
	if after := wholeState(m.g); after != before {
		t.Fatalf("planning changed the graph:\n%s", difference(before, after))
	}
}

// An interrupt is the panic that ends a plan.
type interrupt struct{}

// interruptAt returns a pace function that panics at the given call.
func interruptAt(left int) func() {
	return func() {
		if left--; left == 0 {
			panic(interrupt{})
		}
	}
}

// interruptible reports whether do ended without an interrupt.
func interruptible(do func()) (complete bool) {
	defer func() {
		if p := recover(); p != nil && p != (interrupt{}) {
			panic(p)
		}
	}()
	do()
	return true
}

// planAndDo plans a change and then makes it: it ends as planned, if nothing fails.
func (m *model) planAndDo(t *rapid.T) {
	m.mend()
	wants := m.anyChange(t)
	m.g.BeginPlan(nil)
	m.change(wants)
	var planned []string
	m.all(func(op Op) { planned = append(planned, op.Verb.String()+" "+op.Node.Key()) })
	inTheEnd := m.states()
	m.g.Rollback()
	m.change(wants)
	m.edited()
	maps.Copy(m.wanted, wants)
	maps.DeleteFunc(m.wanted, func(_, text string) bool { return text == "" })
	var done []string
	m.all(func(op Op) {
		m.mayRun(op, nil)
		m.inOrder(op)
		m.southbound(op)
		done = append(done, op.Verb.String()+" "+op.Node.Key())
	})
	m.nobodyIsOusted()
	if !slices.Equal(planned, done) {
		t.Fatalf("planned\n%q\ndone\n%q", planned, done)
	}
	if states := m.states(); states != inTheEnd {
		t.Fatalf("planned\n%s\ndone\n%s", inTheEnd, states)
	}
}

// revert makes a change, or a part of it, and undoes it.
func (m *model) revert(t *rapid.T) {
	m.mend()
	m.all(m.southbound)
	wants := m.anyChange(t)
	t.Logf("## revert")
	m.g.Track()
	m.change(wants)
	for range rapid.IntRange(0, 10).Draw(t, "operations") {
		op, ok := m.g.Next()
		if !ok {
			break
		}
		m.southbound(op)
		m.g.Done(op, nil, nil)
		m.holdersAreOthers()
	}
	m.g.Undo()
	m.all(m.southbound)
	clear(m.had) // who was taken down for a while may have lost its rank
}

// anyChange is what is to be wanted under some keys; empty: nothing.
func (m *model) anyChange(t *rapid.T) map[string]string {
	wants := map[string]string{}
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		key := anyKey(t)
		if wants[key] = ""; rapid.Bool().Draw(t, "wanted") {
			wants[key] = anyText(t, key)
		}
	}
	return wants
}

func (m *model) change(wants map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(wants)) {
		m.t.Logf("## change %s to %q", key, wants[key])
		if text := wants[key]; text != "" {
			m.g.Want(made(key, text))
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
	var out []string
	for n := range m.g.Nodes() {
		key := n.key
		if n.State() == Nonexistent {
			continue
		}
		line := key + " " + stateNames[n.State()]
		for _, v := range []*Value{n.Desired(), n.Actual()} {
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
	if op.Verb == value.Delete {
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
		if op.Verb == value.Create {
			m.forget(key)
		}
		m.g.Done(op, nil, errors.New("broken"))
		return
	}
	m.southbound(op)
	m.g.Done(op, nil, nil)
}

// mayRun checks that an operation runs only while what it needs stands and
// nothing that stands needs what it removes; members of a cycle excepted.
func (m *model) mayRun(op Op, flight []Op) {
	key := op.Node.Key()
	if other, hangs := m.hung[key]; hangs {
		m.t.Fatalf("%v %s while %v of it still runs", op.Verb, key, other.Verb)
	}
	m.mayBeginBeside(op)
	for _, other := range flight {
		if other.Node.Key() == key {
			m.t.Fatalf("%v %s while %v of it is in flight", op.Verb, key, other.Verb)
		}
		if (other.Verb == value.Delete) != (op.Verb == value.Delete) {
			m.t.Fatalf("%v %s while %v %s is in flight", op.Verb, key, other.Verb, other.Node.Key())
		}
	}
	if op.Verb != value.Delete {
		m.needs(op)
		return
	}
	for _, user := range dependents(op.Node) {
		if lineOf(user).Lost() {
			continue // it is deleted when its connection was read back
		}
		if u := m.g.Node(user); u.cycle() == nil || u.cycle() != op.Node.cycle() {
			m.t.Fatalf("delete %s while %s stands on it", key, user)
		}
	}
}

// dependents returns the keys of the actual values that depend on n.
func dependents(n *Node) (out []string) {
	for _, e := range n.in() {
		if e.ofActual() {
			out = append(out, e.v.node.key)
		}
	}
	return out
}

func (m *model) needs(op Op) {
	for _, d := range op.New.Deps {
		met := op.Verb == value.Update && slices.ContainsFunc(op.Old.Deps, func(old value.Dep) bool { return old.Same(&d) && m.mayStand(&d) })
		for key := range m.stands {
			met = met || d.MetBy(key) && !m.isUnknown(key)
		}
		if to := m.g.Node(d.Key); !met && (to == nil || to.cycle() == nil || to.cycle() != op.Node.cycle()) {
			m.t.Fatalf("%v %s while %s does not stand", op.Verb, op.Node.Key(), d.Label)
		}
	}
	for n := range m.g.nodes.All() {
		if n != op.Node && n.actual != nil && rivals(op.New, n.actual.Value) {
			m.t.Fatalf("%v %s while %s has what it claims", op.Verb, op.Node.Key(), n.key)
		}
	}
	if b := op.Node.base; b != nil && !m.stands[b.key] && !(op.Verb == value.Update && b.Unknown()) {
		m.t.Fatalf("%v %s while its base does not stand", op.Verb, op.Node.Key())
	}
}

func (m *model) sameAsSouthbound() {
	for n := range m.g.nodes.All() {
		key := n.key
		if !m.isHung(key) && !n.Unknown() && (n.actual != nil) != m.stands[key] {
			m.t.Fatalf("%s: graph says stands=%v, southbound %v", key, n.actual != nil, m.stands[key])
		}
	}
	for key := range m.stands {
		if m.g.nodes.Get(key) == nil {
			m.t.Fatalf("%s stands, but the graph does not know it", key)
		}
	}
	m.counts()
}

// counts checks the numbers that the graph keeps against the edges they count.
func (m *model) counts() {
	for n := range m.g.nodes.All() {
		key := n.key
		var users int32
		for i, e := range n.in() {
			if e.to != n || int(e.pos) != i {
				m.t.Fatalf("%s: edge %d says it is edge %d of %s", key, i, e.pos, e.to.key)
			}
			if e.ofActual() {
				users++
			}
		}
		if n.desired != nil && m.g.Of(n.desired.Kind)[n.kindIndex] != n {
			m.t.Fatalf("%s is not among those of its kind", key)
		}
		if users != n.dependents {
			m.t.Fatalf("%s: %d users, counted %d", key, users, n.dependents)
		}
		for _, v := range []*version{n.desired, n.actual} {
			if v == nil {
				continue
			}
			var unmet int32
			for _, e := range v.edges() {
				if !e.met {
					unmet++
				}
			}
			for _, c := range v.claims() {
				if c.holder != nil {
					unmet++
				}
			}
			if unmet != v.unmet {
				m.t.Fatalf("%s: %d unmet, counted %d", key, unmet, v.unmet)
			}
		}
	}
}

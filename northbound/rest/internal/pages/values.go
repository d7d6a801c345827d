package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/nodes"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
)

const (
	maxText     = 1 << 10 // of an error or a detail, in bytes
	maxDetails  = 10      // of one value
	maxRoots    = 3
	maxRelated  = 200 // derived values, and dependents
	maxMet      = 20  // values that satisfy one dependency
	maxWords    = 16  // of a search
	maxExplains = 200 // values of a page with why=1
)

// choose returns the values that fit in these states (none: in all), and the number of those that fit in each state.
func (p Pages) choose(fits func(key string) bool, states []scheduler.State) (chosen []*scheduler.Status, counts map[scheduler.State]int) {
	counts = map[scheduler.State]int{}
	for st := range p.Scheduler.All() {
		if !fits(st.Key) {
			continue
		}
		counts[st.State]++
		if len(states) == 0 || slices.Contains(states, st.State) {
			chosen = append(chosen, st)
		}
	}
	return chosen, counts
}

// values answers a part of the values that fit.
func (p Pages) values(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	offset, limit, err := part(q)
	if err != nil {
		return err
	}
	wanted, err := statesIn(q)
	if err != nil {
		return reply.BadRequest(err)
	}
	why, err := q.Boolean("why")
	if err != nil {
		return reply.BadRequest(err)
	}
	if why && limit > maxExplains {
		return reply.BadRequest(fmt.Errorf("argument limit=%d: expected at most %d with why=1", limit, maxExplains))
	}
	search, err := q.One("search")
	if err != nil {
		return reply.BadRequest(err)
	}
	fits, err := matcher(p.Short(search))
	if err != nil {
		return reply.BadRequest(err)
	}
	order, err := q.Choice("sort", "key", "trouble")
	if err != nil {
		return reply.BadRequest(err)
	}
	out := browse.ValuePage{Offset: offset, States: map[string]int{}, Values: []browse.ListedValue{}}
	chosen, counts := p.choose(fits, wanted)
	for state, n := range counts {
		out.States[state.String()] = n
	}
	slices.SortFunc(chosen, func(a, b *scheduler.Status) int {
		byState := 0
		if order == "trouble" {
			byState = cmp.Compare(trouble(a.State), trouble(b.State))
		}
		return cmp.Or(byState, strings.Compare(a.Key, b.Key))
	})
	out.Total = len(chosen)
	chosen = cut(chosen, offset, limit)
	for _, st := range chosen {
		out.Values = append(out.Values, listed(st))
	}
	if why {
		p.addRoots(out.Values)
	}
	return reply.JSON(w, out)
}

// trouble is the place of a state in the order of trouble: what nobody but a person can mend comes first,
// then what the agent tries again, then what waits for others.
func trouble(s scheduler.State) int {
	worst := []scheduler.State{
		scheduler.Failed, scheduler.Retrying, scheduler.Invalid, scheduler.Unimplemented, scheduler.Missing, scheduler.Pending,
		scheduler.Discovered, scheduler.Obtained, scheduler.Configured,
	}
	if i := slices.Index(worst, s); i >= 0 {
		return i
	}
	return len(worst)
}

// addRoots adds the last causes of the values that are not as declared.
func (p Pages) addRoots(values []browse.ListedValue) {
	var keys []string
	for _, v := range values {
		if v.State != scheduler.Configured.String() && v.State != scheduler.Obtained.String() {
			keys = append(keys, v.Key)
		}
	}
	if len(keys) == 0 { // explaining nothing would still index all values
		return
	}
	roots := explain.Roots(p.Scheduler, keys, maxRoots)
	for i := range values {
		for _, e := range roots[values[i].Key] {
			values[i].Roots = append(values[i].Roots, browse.Root{Key: e.Key, Text: printable.Cut(e.Text, maxText)})
		}
	}
}

// statesIn returns the states in the argument state; none: all.
func statesIn(q endpoint.Query) (out []scheduler.State, err error) {
	var names []string
	for s := scheduler.Missing; s <= scheduler.Retrying; s++ {
		names = append(names, s.String())
	}
	for _, name := range q.Values["state"] {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("argument state=%q: expected one of %s", name, strings.Join(names, ", "))
		}
		out = append(out, scheduler.Missing+scheduler.State(i))
	}
	return out, nil
}

// matcher returns a filter for keys that contain each word of a search, in any order and in
// small or capital letters.
func matcher(search string) (func(key string) bool, error) {
	words := strings.Fields(strings.ToLower(search))
	if len(words) > maxWords {
		return nil, fmt.Errorf("argument search has %d words; expected at most %d", len(words), maxWords)
	}
	return func(key string) bool {
		if len(words) == 0 {
			return true
		}
		key = strings.ToLower(key)
		for _, w := range words {
			if !strings.Contains(key, w) {
				return false
			}
		}
		return true
	}, nil
}

// listed converts the state of a value.
func listed(st *scheduler.Status) browse.ListedValue {
	out := browse.ListedValue{
		Key: st.Key, State: st.State.String(), Since: st.Since, Error: printable.Cut(reply.ErrorText(st.Err), maxText),
		Descriptor: st.Descriptor, Base: st.Base,
	}
	for _, d := range st.Details[:min(len(st.Details), maxDetails)] {
		out.Details = append(out.Details, printable.Cut(d, maxText))
	}
	if st.Last != scheduler.Verb(0) {
		out.LastOperation = st.Last.String()
	}
	return out
}

// value answers one value. A key without a value is NONEXISTENT, and may have dependents that
// wait for it.
func (p Pages) value(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	key, err := q.Required("key", "the key of a value, such as config/linux/interfaces/v2/interface/veth1")
	if err != nil {
		return reply.BadRequest(err)
	}
	key = p.Short(key)
	out := browse.ValueDetails{
		Value: browse.ListedValue{Key: key, State: scheduler.Nonexistent.String()},
		Needs: []browse.Need{}, Derived: []browse.Neighbour{}, Dependents: []browse.Neighbour{},
	}
	if st, exists := p.Scheduler.Status(key); exists {
		out.Value = listed(st)
		out.Desired, out.Actual = wire.MessageOf(models.Redacted(st.Desired)), wire.MessageOf(models.Redacted(st.Actual))
		out.Needs = p.needs(st)
	}
	derived := p.derived(key)
	out.Dependents, out.MoreDependents = bounded(p.dependents(key, derived))
	out.Derived, out.MoreDerived = bounded(derived)
	return reply.JSON(w, out)
}

// bounded sorts neighbours by key, and returns the first ones and the number of the others.
func bounded(all []browse.Neighbour) (first []browse.Neighbour, more int) {
	slices.SortFunc(all, func(a, b browse.Neighbour) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Via, b.Via), cmp.Compare(a.Label, b.Label))
	})
	first = all[:min(len(all), maxRelated)]
	return append([]browse.Neighbour{}, first...), len(all) - len(first)
}

// needs returns the dependencies of a value, with the values that satisfy them.
func (p Pages) needs(st *scheduler.Status) []browse.Need {
	deps := st.Dependencies()
	met := make([][]browse.Neighbour, len(deps))
	for other := range p.Scheduler.All() {
		for i, d := range deps {
			if other.Key == d.Key || d.Key == "" && d.MetBy(other.Key) {
				met[i] = append(met[i], browse.Neighbour{Key: other.Key, State: other.State.String()})
			}
		}
	}
	out := []browse.Need{}
	for i, d := range deps {
		first, _ := bounded(met[i])
		n := min(len(first), maxMet)
		out = append(out, browse.Need{Label: d.Label, Expected: nodes.Expected(d), Met: first[:n], More: len(met[i]) - n})
	}
	return out
}

// derived returns the values that are derived from key, directly or indirectly.
func (p Pages) derived(key string) (out []browse.Neighbour) {
	bases := map[string][]*scheduler.Status{}
	for st := range p.Scheduler.All() {
		if st.Base != "" {
			bases[st.Base] = append(bases[st.Base], st)
		}
	}
	var add func(base string)
	add = func(base string) {
		for _, st := range bases[base] {
			out = append(out, browse.Neighbour{Key: st.Key, State: st.State.String()})
			add(st.Key)
		}
	}
	add(key)
	return out
}

// dependents returns the values with a dependency that key, or a value derived from it, can
// satisfy.
func (p Pages) dependents(key string, derived []browse.Neighbour) (out []browse.Neighbour) {
	own := map[string]bool{key: true}
	keys := []string{key}
	for _, d := range derived {
		own[d.Key], keys = true, append(keys, d.Key)
	}
	for st := range p.Scheduler.All() {
		if own[st.Key] {
			continue
		}
		for _, d := range st.Dependencies() {
			by := d.Key
			if by == "" {
				by = first(keys, d.MetBy)
			}
			if by == "" || !own[by] {
				continue
			}
			n := browse.Neighbour{Key: st.Key, State: st.State.String(), Label: d.Label}
			if by != key {
				n.Via = by
			}
			out = append(out, n)
		}
	}
	return out
}

// first returns the first key that is accepted; empty: none is.
func first(keys []string, accepts func(string) bool) string {
	if i := slices.IndexFunc(keys, accepts); i >= 0 {
		return keys[i]
	}
	return ""
}

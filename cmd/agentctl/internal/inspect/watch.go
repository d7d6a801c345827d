package inspect

import (
	"context"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// maxSingle is the number of changed values that are read one by one. Above it, one request
// for all values is cheaper.
const maxSingle = 16

// removed is the state of a value that is gone.
const removed = "REMOVED"

// states are the states that a value can be filtered by.
func states() []string {
	return []string{"CONFIGURED", "DISCOVERED", "FAILED", "INVALID", "MISSING", "OBTAINED", "PENDING", removed, "RETRYING", "UNIMPLEMENTED"}
}

// A stateFilter is the set of states that are printed; empty: all.
type stateFilter []string

// filterOf checks the words of the flag --state. They may be in small letters.
func filterOf(words []string) (out stateFilter, err error) {
	for _, w := range words {
		state := strings.ToUpper(w)
		if !slices.Contains(states(), state) {
			return nil, session.Usagef("state %q: expected some of %s", w, strings.Join(states(), ", "))
		}
		out = append(out, state)
	}
	return out, nil
}

// fits reports whether a state is printed.
func (f stateFilter) fits(state string) bool { return len(f) == 0 || slices.Contains(f, state) }

// keep returns the values that have a state of the filter, or that a derived value with such a
// state belongs to, and only those derived values.
func (f stateFilter) keep(all []wire.BaseValueStatus) []wire.BaseValueStatus {
	if len(f) == 0 {
		return all
	}
	out := []wire.BaseValueStatus{} // never nil, so that json prints [] and not null
	for _, st := range all {
		st.DerivedValues = slices.DeleteFunc(slices.Clone(st.DerivedValues), func(d wire.ValueStatus) bool { return !f.fits(d.State) })
		if f.fits(st.Value.State) || len(st.DerivedValues) > 0 {
			out = append(out, st)
		}
	}
	return out
}

// A valueWatch prints values, and then those that change.
type valueWatch struct {
	s        *session.Session
	known    session.Catalogue
	prefixes []string // of the keys of base values, or allKeys
	filter   stateFilter
	format   *show.Format

	table *show.Table // nil: nothing is printed yet
	last  map[string]wire.ValueStatus
}

// run follows the agent until ctx ends.
func (w *valueWatch) run(ctx context.Context) error { return w.s.Follow(ctx, w.news) }

// news prints the values that have changed.
func (w *valueWatch) news(ctx context.Context, n session.News) error {
	switch {
	case n.Again, len(n.Keys) > maxSingle, len(n.Keys) > 0 && w.prefixes[0] != "":
		statuses, err := statusesUnder(ctx, w.s, w.prefixes)
		if err != nil {
			return err
		}
		return w.all(statuses)
	}
	var changed []wire.ValueStatus
	for _, key := range n.Keys {
		var st wire.BaseValueStatus
		if err := w.s.Get(ctx, "/scheduler/status", url.Values{"key": {key}}, &st); err != nil {
			return err
		}
		changed = append(changed, st.Value)
	}
	return w.changed(changed)
}

// all compares all values with the last ones, and prints the difference.
func (w *valueWatch) all(statuses []wire.BaseValueStatus) error {
	now := map[string]bool{}
	var changed []wire.ValueStatus
	for _, st := range statuses {
		for _, v := range append([]wire.ValueStatus{st.Value}, st.DerivedValues...) {
			now[v.Key] = true
			changed = append(changed, v)
		}
	}
	var gone []string
	for key := range w.last {
		if !now[key] {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		changed = append(changed, wire.ValueStatus{Key: key, State: removed})
	}
	return w.changed(changed)
}

// changed prints the values that differ from the last ones. A value that leaves the states of
// the filter is printed, too: otherwise its last line would be wrong.
func (w *valueWatch) changed(values []wire.ValueStatus) error {
	first := w.last == nil
	if first {
		w.last = map[string]wire.ValueStatus{}
	}
	shown := []wire.BaseValueStatus{}
	for _, v := range values {
		if v.State == "NONEXISTENT" {
			v.State = removed
		}
		if w.replace(v) {
			shown = append(shown, wire.BaseValueStatus{Value: v})
		}
	}
	if !first && len(shown) == 0 {
		return nil
	}
	return w.format.Write(w.s.Out, shown, func(out io.Writer) error {
		if w.table == nil {
			w.table = show.NewTable(out, valueColumns()...)
			w.table.Whole(append(shortColumns(), "NAME")...)
		}
		for _, st := range shown {
			valueTable{known: w.known}.row(w.table, st.Value)
		}
		return w.table.End()
	})
}

// replace remembers the newest state of a value. It reports whether that has to be printed.
func (w *valueWatch) replace(v wire.ValueStatus) bool {
	before, had := w.last[v.Key]
	if had && reflect.DeepEqual(before, v) || !had && v.State == removed {
		return false
	}
	w.last[v.Key] = v
	if v.State == removed {
		delete(w.last, v.Key)
	}
	return w.filter.fits(v.State) || had && w.filter.fits(before.State)
}

// statusesUnder returns the states of values below prefixes, in their order.
func statusesUnder(ctx context.Context, s *session.Session, prefixes []string) ([]wire.BaseValueStatus, error) {
	out := []wire.BaseValueStatus{}
	for _, prefix := range prefixes {
		var some []wire.BaseValueStatus
		if err := s.Get(ctx, "/scheduler/status", url.Values{"key-prefix": {prefix}, "key": {""}}, &some); err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

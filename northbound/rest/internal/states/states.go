// Package states converts the present states of values for clients: a declared value together with
// the values that are derived from it. All of it is pure and works on a snapshot.
package states

import (
	"cmp"
	"slices"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// OfKey returns the state of key and its derived values. An unknown key is NONEXISTENT. Its cost does not
// depend on the number of other values.
func OfKey(find func(key string) (*scheduler.Status, bool), key string) wire.BaseValueStatus {
	base, found := find(key)
	if !found {
		return wire.BaseValueStatus{Value: wire.ValueStatus{Key: key, State: scheduler.Nonexistent.String()}}
	}
	parts := Parts{}
	parts.add(find, base)
	return parts.With(base)
}

// add adds the values that are derived from one, directly or indirectly.
func (p Parts) add(find func(key string) (*scheduler.Status, bool), base *scheduler.Status) {
	for _, key := range base.Derived() {
		if st, found := find(key); found && st.Base == base.Key {
			p[base.Key] = append(p[base.Key], st)
			p.add(find, st)
		}
	}
}

// One converts the state of one value.
func One(st *scheduler.Status) wire.ValueStatus {
	out := wire.ValueStatus{Key: st.Key, State: st.State.String(), Error: reply.ErrorText(st.Err), Details: st.Details}
	if st.Last != scheduler.Verb(0) {
		out.LastOperation = st.Last.String()
	}
	return out
}

// Parts are the derived values by the key of the value that they are derived from.
type Parts map[string][]*scheduler.Status

// With returns the state of a value and of the values derived from it.
func (p Parts) With(base *scheduler.Status) wire.BaseValueStatus {
	return wire.BaseValueStatus{Value: One(base), DerivedValues: p.below(base.Key)}
}

// DerivedFrom returns the derived values among the statuses.
func DerivedFrom(statuses []*scheduler.Status) Parts {
	out := Parts{}
	for _, st := range statuses {
		if st.Base != "" {
			out[st.Base] = append(out[st.Base], st)
		}
	}
	return out
}

// below returns the values derived from key, directly or indirectly, sorted by key.
func (p Parts) below(key string) (out []wire.ValueStatus) {
	for _, st := range p[key] {
		out = append(append(out, One(st)), p.below(st.Key)...)
	}
	slices.SortFunc(out, func(a, b wire.ValueStatus) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// status answers the state of one value, of the values of a descriptor or below a
// prefix, or of all values. Derived values are listed with their base value.
func (h *handler) status(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	by, value, err := q.AtMostOne("key", "descriptor", "key-prefix")
	if err != nil {
		return err
	}
	if by != "descriptor" {
		value = h.short(value)
	}
	statuses := h.sched.Statuses("")
	switch by {
	case "key":
		return reply.JSON(w, statusOf(statuses, value))
	case "descriptor":
		if _, err := h.descriptor(by, value); err != nil {
			return err
		}
	}
	derived := derivedBy(statuses)
	bases := slices.DeleteFunc(statuses, func(st *scheduler.Status) bool {
		return st.Base != "" || by == "descriptor" && st.Descriptor != value || by == "key-prefix" && !strings.HasPrefix(st.Key, value)
	})
	return reply.Array(w, reply.Mapped(bases, func(st *scheduler.Status) wire.BaseValueStatus {
		return wire.BaseValueStatus{Value: valueStatus(st), DerivedValues: derived.below(st.Key)}
	}))
}

// statusOf returns the state of key and its derived values. statuses is sorted by key. An
// unknown key is NONEXISTENT. It costs a search for the key and one pass over the derived
// values.
func statusOf(statuses []*scheduler.Status, key string) wire.BaseValueStatus {
	i, found := slices.BinarySearchFunc(statuses, key, func(st *scheduler.Status, key string) int { return strings.Compare(st.Key, key) })
	if !found {
		return wire.BaseValueStatus{Value: wire.ValueStatus{Key: key, State: scheduler.Nonexistent.String()}}
	}
	return wire.BaseValueStatus{Value: valueStatus(statuses[i]), DerivedValues: derivedBy(statuses).below(key)}
}

// valueStatus converts the state of one value.
func valueStatus(st *scheduler.Status) wire.ValueStatus {
	out := wire.ValueStatus{Key: st.Key, State: st.State.String(), Error: reply.ErrorText(st.Err), Details: st.Details}
	if st.Last != scheduler.Verb(0) {
		out.LastOperation = st.Last.String()
	}
	return out
}

// parts holds the derived values by the key of the value that they are derived from.
type parts map[string][]*scheduler.Status

// derivedBy indexes the derived values.
func derivedBy(statuses []*scheduler.Status) parts {
	out := parts{}
	for _, st := range statuses {
		if st.Base != "" {
			out[st.Base] = append(out[st.Base], st)
		}
	}
	return out
}

// below returns the values derived from key, directly or indirectly, sorted by key.
func (p parts) below(key string) (out []wire.ValueStatus) {
	for _, st := range p[key] {
		out = append(append(out, valueStatus(st)), p.below(st.Key)...)
	}
	slices.SortFunc(out, func(a, b wire.ValueStatus) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

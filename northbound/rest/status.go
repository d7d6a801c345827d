package rest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/states"
	"github.com/keyplane/keyplane/scheduler"
)

// status answers the state of one value, of the values of a descriptor or below a
// prefix, or of all values. Derived values are listed with their base value. Many values take turns.
func (h *handler) status(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	by, value, err := q.AtMostOne("key", "descriptor", "key-prefix")
	if err != nil {
		return err
	}
	switch by {
	case "key":
		return reply.JSON(w, states.OfKey(h.sched.Status, h.short(value)))
	case "key-prefix":
		value = h.short(value)
	case "descriptor":
		if _, err := h.descriptor(by, value); err != nil {
			return err
		}
	}
	return h.inTurn(w, r, bytesOfAnswer, time.Now().Add(expensiveWait), func(w http.ResponseWriter) error {
		statuses := h.sched.Statuses("")
		derived := states.DerivedFrom(statuses)
		bases := slices.DeleteFunc(statuses, func(st *scheduler.Status) bool {
			return st.Base != "" || by == "descriptor" && st.Descriptor != value || by == "key-prefix" && !strings.HasPrefix(st.Key, value)
		})
		return reply.Array(w, reply.Mapped(bases, derived.With))
	})
}

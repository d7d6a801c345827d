package rest

import (
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// events streams changes until the client leaves. A user whose token has ended gets no more of
// them.
func (h *handler) events(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	return h.streams.Serve(w, r, func() error {
		if h.guard == nil {
			return nil
		}
		user, err := h.guard.User(r)
		if err == nil && !user.May(string(endpoint.Dump)) {
			err = auth.ErrUnknown
		}
		return err
	})
}

// sourcesNow returns the state of each source.
func (h *handler) sourcesNow() (out []wire.Source) {
	if h.Sources == nil {
		return nil
	}
	for _, s := range h.Sources.Health() {
		out = append(out, sourceOf(s))
	}
	return out
}

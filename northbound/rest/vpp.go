package rest

import (
	"errors"
	"net/http"
)

// vpp answers the state of VPP.
func (h *handler) vpp(w http.ResponseWriter, r *http.Request, _ query) error {
	if h.VPP == nil {
		return notFound(errors.New("this agent has no VPP"))
	}
	return replyJSON(w, h.VPP(r.Context()))
}

package rest

import (
	"errors"
	"net/http"
)

// errNoVPP is the answer of an agent without VPP.
var errNoVPP = errors.New("this agent has no VPP")

// vpp answers the state of VPP.
func (h *handler) vpp(w http.ResponseWriter, r *http.Request, _ query) error {
	if h.VPP == nil {
		return notFound(errNoVPP)
	}
	return replyJSON(w, h.VPP(r.Context()))
}

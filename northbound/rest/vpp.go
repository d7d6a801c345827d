package rest

import (
	"errors"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// errNoVPP is the answer of an agent without VPP.
var errNoVPP = errors.New("this agent has no VPP")

// vpp answers the state of VPP.
func (h *handler) vpp(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if h.VPP == nil {
		return reply.NotFound(errNoVPP)
	}
	return reply.JSON(w, h.VPP(r.Context()))
}

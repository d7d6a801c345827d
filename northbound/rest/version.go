package rest

import (
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// version answers the version of the agent.
func (h *handler) version(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	return reply.JSON(w, h.Version)
}

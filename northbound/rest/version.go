package rest

import "net/http"

// version answers the version of the agent.
func (h *handler) version(w http.ResponseWriter, _ *http.Request, _ query) error {
	return replyJSON(w, h.Version)
}

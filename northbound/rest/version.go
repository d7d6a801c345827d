package rest

import "net/http"

func (h *handler) version(w http.ResponseWriter, _ *http.Request, _ query) error {
	return replyJSON(w, h.Version)
}

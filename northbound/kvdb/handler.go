package kvdb

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// allAgents begins the keys of all agents.
const allAgents = "/vnf-agent/"

// Handler serves the stores of the agent of a label by their names. The map is not
// changed afterwards. Short keys ("config/...") are completed with the label; without one
// all keys are taken as they come.
func Handler(label string, stores map[string]kvdbsync.Store) http.Handler {
	h := handler{label, stores}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/stores", h.names)
	mux.HandleFunc("GET /v1/stores/{store}/keys", h.list)
	mux.HandleFunc("GET /v1/stores/{store}/key", h.get)
	mux.HandleFunc("PUT /v1/stores/{store}/key", h.put)
	mux.HandleFunc("DELETE /v1/stores/{store}/key", h.delete)
	return mux
}

type handler struct {
	label  string
	stores map[string]kvdbsync.Store
}

func (h handler) names(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, about{Label: h.label, Stores: slices.Sorted(maps.Keys(h.stores))})
}

// store finds what a request is for, or replies that it is not there.
func (h handler) store(w http.ResponseWriter, r *http.Request) (kvdbsync.Store, bool) {
	name := r.PathValue("store")
	s, ok := h.stores[name]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(h.stores)), ", ")
		fail(w, fmt.Errorf("%w: %q: the agent has %s", ErrNoStore, name, orNone(names)))
	}
	return s, ok
}

func orNone(names string) string {
	if names == "" {
		return "none"
	}
	return names
}

// keyed is store for requests that name a key.
func (h handler) keyed(w http.ResponseWriter, r *http.Request) (s kvdbsync.Store, key string, ok bool) {
	if s, ok = h.store(w, r); !ok {
		return nil, "", false
	}
	if key = r.FormValue("key"); key == "" {
		fail(w, fmt.Errorf("%w: parameter key is empty: expected a key", errBadRequest))
		return nil, "", false
	}
	return s, h.whole(key), true
}

// whole completes a short key.
func (h handler) whole(key string) string {
	if h.label == "" || strings.HasPrefix(key, allAgents) {
		return key
	}
	return allAgents + h.label + "/" + strings.TrimPrefix(key, "/")
}

func (h handler) list(w http.ResponseWriter, r *http.Request) {
	s, ok := h.store(w, r)
	if !ok {
		return
	}
	pairs, err := s.List(r.Context(), r.FormValue("prefix"))
	if err != nil {
		fail(w, err)
		return
	}
	keysOnly := r.FormValue("keys_only") != ""
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := bufio.NewWriterSize(w, 64<<10)
	lines := json.NewEncoder(out)
	for _, p := range pairs {
		line := pair{Key: p.Key, Value: p.Value}
		if keysOnly {
			line.Value = nil
		}
		if err := lines.Encode(line); err != nil {
			return // the client has gone
		}
	}
	_ = out.Flush() // as above
}

func (h handler) get(w http.ResponseWriter, r *http.Request) {
	s, key, ok := h.keyed(w, r)
	if !ok {
		return
	}
	value, err := s.Get(r.Context(), key)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(value) //nolint:gosec // the type is application/octet-stream; fails only when the client has gone
}

func (h handler) put(w http.ResponseWriter, r *http.Request) {
	s, key, ok := h.keyed(w, r)
	if !ok {
		return
	}
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxValue))
	if err == nil {
		err = s.Put(r.Context(), key, value)
	}
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, struct{}{})
}

func (h handler) delete(w http.ResponseWriter, r *http.Request) {
	s, key, ok := h.keyed(w, r)
	if !ok {
		return
	}
	existed, err := s.Delete(r.Context(), key)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, deleted{existed})
}

func fail(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = fmt.Errorf("value: %w: expected at most %d bytes", errTooLarge, MaxValue)
	}
	status, code := statusOf(err)
	reply(w, status, failure{err.Error(), code})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only when the client has gone
}

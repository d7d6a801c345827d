package kvdb

import (
	"bufio"
	"context"
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

// allAgents is the common prefix of the keys of all agents.
const allAgents = "/vnf-agent/"

// Handler serves the stores by name; byPriority are their names, the highest priority first. It completes short keys ("config/...") with the
// label; without a label, keys are not changed. The caller must not modify the map
// afterwards.
func Handler(label string, stores map[string]kvdbsync.Store, byPriority []string) http.Handler {
	h := handler{label, stores, byPriority}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/stores", h.names)
	mux.HandleFunc("GET /v1/stores/{store}/keys", h.list)
	mux.HandleFunc("GET /v1/stores/{store}/key", h.get)
	mux.HandleFunc("PUT /v1/stores/{store}/key", h.put)
	mux.HandleFunc("DELETE /v1/stores/{store}/key", h.delete)
	mux.HandleFunc("POST /v1/stores/{store}/apply", h.apply)
	mux.HandleFunc("POST /v1/stores/{store}/replace", h.replace)
	return mux
}

// A handler serves the keys of one store.
type handler struct {
	label  string
	stores map[string]kvdbsync.Store
	// The names of the stores, the highest priority first; nil: nobody knows.
	byPriority []string
}

// names answers label and stores.
func (h handler) names(w http.ResponseWriter, _ *http.Request) {
	out := about{Label: h.label, Stores: slices.Sorted(maps.Keys(h.stores)), ByPriority: h.byPriority}
	for _, name := range h.byPriority {
		fixed, isFixed := h.stores[name].(interface{ ReadOnly() bool })
		if !isFixed || !fixed.ReadOnly() {
			out.Writable = append(out.Writable, name)
		}
	}
	reply(w, http.StatusOK, out)
}

// store returns the store of a request, or answers the error.
func (h handler) store(w http.ResponseWriter, r *http.Request) (kvdbsync.Store, bool) {
	name := r.PathValue("store")
	s, ok := h.stores[name]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(h.stores)), ", ")
		fail(w, fmt.Errorf("%w: %q: the agent has %s", ErrNoStore, name, orNone(names)))
	}
	return s, ok
}

// orNone returns names, or "none".
func orNone(names string) string {
	if names == "" {
		return "none"
	}
	return names
}

// keyed returns store and full key of a request, or answers the error.
func (h handler) keyed(w http.ResponseWriter, r *http.Request) (s kvdbsync.Store, key string, ok bool) {
	s, ok = h.store(w, r)
	if !ok {
		return nil, "", false
	}
	// Never by FormValue: it reads the body, which is the value, if its type is that of a form, and
	// curl says so by default. The value would be lost, or its text would name another key.
	key = r.URL.Query().Get("key")
	if key == "" {
		fail(w, fmt.Errorf("%w: parameter key is empty: expected a key", errBadRequest))
		return nil, "", false
	}
	return s, h.whole(key), true
}

// whole completes a short key with the label.
func (h handler) whole(key string) string {
	if h.label == "" || strings.HasPrefix(key, allAgents) {
		return key
	}
	return allAgents + h.label + "/" + strings.TrimPrefix(key, "/")
}

// list answers the pairs, one JSON object per line.
func (h handler) list(w http.ResponseWriter, r *http.Request) {
	s, ok := h.store(w, r)
	if !ok {
		return
	}
	query := r.URL.Query() // as in keyed
	pairs, err := s.List(r.Context(), query.Get("prefix"))
	if err != nil {
		fail(w, err)
		return
	}
	keysOnly := query.Get("keys_only") != ""
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := bufio.NewWriterSize(w, 64<<10)
	lines := json.NewEncoder(out)
	for _, p := range pairs {
		line := pair{Key: p.Key, Value: p.Value}
		if keysOnly {
			line.Value = nil
		}
		if err := lines.Encode(line); err != nil {
			return // the client has disconnected
		}
	}
	_ = out.Flush() // an error means that the client has disconnected
}

// get answers the bytes of a value.
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

// put writes a value of at most MaxValue bytes.
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

// delete deletes a key and answers whether it existed.
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

// An applier is a store that makes several changes at once.
type applier interface {
	Apply(ctx context.Context, changes []kvdbsync.Pair) error
}

// apply makes the changes of the body at once, or none. The body is an array of pairs; a value of
// null deletes its key.
func (h handler) apply(w http.ResponseWriter, r *http.Request) {
	s, ok := h.store(w, r)
	if !ok {
		return
	}
	into, able := s.(applier)
	if !able {
		fail(w, fmt.Errorf("%w: %s", kvdbsync.ErrReadOnly, r.PathValue("store")))
		return
	}
	var pairs []pair
	if err := readJSON(w, r, maxApply, "changes", "an array of {key, value}", &pairs); err != nil {
		fail(w, err)
		return
	}
	changes := make([]kvdbsync.Pair, len(pairs))
	for i, p := range pairs {
		if p.Key == "" {
			fail(w, fmt.Errorf("%w: the key of change %d is empty: expected a key", errBadRequest, i+1))
			return
		}
		changes[i] = kvdbsync.Pair{Key: h.whole(p.Key), Value: p.Value}
	}
	if err := into.Apply(r.Context(), changes); err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, struct{}{})
}

// A replacer is a store that compares and writes in one step.
type replacer interface {
	PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error)
}

// replace writes a value if the key still holds the old one, and answers whether it did.
func (h handler) replace(w http.ResponseWriter, r *http.Request) {
	s, ok := h.store(w, r)
	if !ok {
		return
	}
	into, able := s.(replacer)
	if !able {
		fail(w, fmt.Errorf("%w: %s", kvdbsync.ErrReadOnly, r.PathValue("store")))
		return
	}
	var asked replacement
	const expected = "{key, old, value} with a key that is not empty"
	err := readJSON(w, r, maxReplace, "values", expected, &asked)
	if err == nil && asked.Key == "" {
		err = fmt.Errorf("%w: expected %s", errBadRequest, expected)
	}
	if err != nil {
		fail(w, err)
		return
	}
	stored, err := into.PutIfSame(r.Context(), h.whole(asked.Key), asked.Old, asked.Value)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, replaced{stored})
}

// readJSON reads the JSON of a body of at most limit bytes. The error names the subject of a body that
// is larger, and what is expected in place of one that is no such JSON.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, subject, expected string, into any) error {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(into)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return fmt.Errorf("%s: %w: expected at most %d bytes", subject, errTooLarge, limit)
	}
	if err != nil {
		return fmt.Errorf("%w: expected %s: %w", errBadRequest, expected, err)
	}
	return nil
}

// fail answers an error with status and code.
func fail(w http.ResponseWriter, err error) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = fmt.Errorf("value: %w: expected at most %d bytes", errTooLarge, MaxValue)
	}
	status, code := statusOf(err)
	reply(w, status, failure{err.Error(), code})
}

// reply answers JSON.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client has disconnected
}

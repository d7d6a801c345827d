package kvdb

import (
	"errors"
	"net/http"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Bodies of requests and answers.
type (
	about struct {
		Label  string   `json:"label,omitempty"`
		Stores []string `json:"stores"`
		// ByPriority are all of them, the highest first, and Writable those that can be written. Agents
		// of earlier releases have neither.
		ByPriority []string `json:"by_priority,omitempty"`
		Writable   []string `json:"writable,omitempty"`
	}
	pair struct {
		Key   string `json:"key"`
		Value []byte `json:"value"` // null if only keys are requested; in a change: deletes the key
	}
	deleted struct {
		Existed bool `json:"existed"`
	}
	replacement struct {
		Key   string `json:"key"`
		Old   []byte `json:"old"`
		Value []byte `json:"value"`
	}
	replaced struct {
		Stored bool `json:"stored"`
	}
	failure struct {
		Error string `json:"error"`
		Code  string `json:"code"`
	}
)

var (
	errBadRequest = errors.New("bad request")
	errTooLarge   = errors.New("too large")
)

// A kind is an error with its status and code, so that errors.Is works at both ends.
type kind struct {
	err    error
	status int
	code   string
}

// kinds returns the errors that cross the wire. Others become 500 failed.
func kinds() []kind {
	return []kind{
		{kvdbsync.ErrNotFound, http.StatusNotFound, "not_found"},
		{kvdbsync.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large_at_once"},
		{ErrNoStore, http.StatusNotFound, "no_store"},
		{kvdbsync.ErrReadOnly, http.StatusMethodNotAllowed, "read_only"},
		{errBadRequest, http.StatusBadRequest, "bad_request"},
		{errTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	}
}

// statusOf returns status and code of an error.
func statusOf(err error) (status int, code string) {
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k.status, k.code
		}
	}
	return http.StatusInternalServerError, "failed"
}

// A remoteError is an error of the agent: its text, and the kind for errors.Is.
type remoteError struct {
	text string
	kind error // nil: not in kinds
}

// Error implements error.
func (e *remoteError) Error() string { return e.text }

// Unwrap returns the kind.
func (e *remoteError) Unwrap() error { return e.kind }

// asError converts an answered error.
func (f failure) asError() error {
	for _, k := range kinds() {
		if k.code == f.Code {
			return &remoteError{f.Error, k.err}
		}
	}
	return &remoteError{f.Error, nil}
}

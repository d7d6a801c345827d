package kvdb

import (
	"errors"
	"net/http"

	"github.com/keyplane/keyplane/kvdbsync"
)

// What goes over the wire besides plain values.
type (
	about struct {
		Label  string   `json:"label,omitempty"`
		Stores []string `json:"stores"`
	}
	pair struct {
		Key   string `json:"key"`
		Value []byte `json:"value"` // null where only keys are asked for
	}
	deleted struct {
		Existed bool `json:"existed"`
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

// A kind of error has a status and a code, and is the same at both ends.
type kind struct {
	err    error
	status int
	code   string
}

func kinds() []kind {
	return []kind{
		{kvdbsync.ErrNotFound, http.StatusNotFound, "not_found"},
		{ErrNoStore, http.StatusNotFound, "no_store"},
		{kvdbsync.ErrReadOnly, http.StatusMethodNotAllowed, "read_only"},
		{errBadRequest, http.StatusBadRequest, "bad_request"},
		{errTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	}
}

func statusOf(err error) (status int, code string) {
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k.status, k.code
		}
	}
	return http.StatusInternalServerError, "failed"
}

// A remoteError has the text of the other end, and is of the same kind.
type remoteError struct {
	text string
	kind error // nil: of none
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

func (f failure) asError() error {
	for _, k := range kinds() {
		if k.code == f.Code {
			return &remoteError{f.Error, k.err}
		}
	}
	return &remoteError{f.Error, nil}
}

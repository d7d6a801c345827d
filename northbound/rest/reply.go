package rest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A statusError has an HTTP status. Other errors are answered with 500.
type statusError struct {
	status int
	error
}

// Unwrap returns the error without the status.
func (e statusError) Unwrap() error { return e.error }

// notFound returns err with status 404.
func notFound(err error) error { return statusError{http.StatusNotFound, err} }

// badRequest returns err with status 400, or nil for nil.
func badRequest(err error) error {
	if err == nil {
		return nil
	}
	return statusError{http.StatusBadRequest, err}
}

// fail answers an error as JSON.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if s, ok := errors.AsType[statusError](err); ok {
		status = s.status
	}
	answer := wire.Failure{Error: err.Error()}
	if d, ok := errors.AsType[detailedError](err); ok {
		status, answer.Failed = d.status, d.failed
	}
	header(w, jsonType, status)
	encode(w, "", answer)
}

const (
	jsonMedia = "application/json"
	jsonType  = "application/json; charset=UTF-8"
	textType  = "text/plain; charset=UTF-8"
)

// header writes the status and headers. nosniff keeps browsers from executing
// answers as scripts.
func header(w http.ResponseWriter, contentType string, status int) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}

// An error while an answer is written means that the client has disconnected. It is
// ignored: the server cannot tell anybody.

// replyJSON answers v as indented JSON.
func replyJSON(w http.ResponseWriter, v any) error {
	header(w, jsonType, http.StatusOK)
	encode(w, "", v)
	return nil
}

// replyArray answers a list. It encodes item by item, so that memory does not grow
// with its length.
func replyArray[T any](w http.ResponseWriter, items iter.Seq[T]) error {
	header(w, jsonType, http.StatusOK)
	out := bufio.NewWriterSize(w, 64<<10)
	writeArray(out, "", items)
	_ = out.WriteByte('\n')
	_ = out.Flush()
	return nil
}

// replyPlan writes a wire.Plan item by item: it may have a hundred thousand operations.
func replyPlan(w http.ResponseWriter, operations iter.Seq[wire.Operation], invalid []wire.Invalid, warnings []wire.Warning) error {
	header(w, jsonType, http.StatusOK)
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString("{\n  \"Operations\": ")
	writeArray(out, "  ", operations)
	_, _ = out.WriteString(",\n  \"Invalid\": ")
	writeArray(out, "  ", slices.Values(invalid))
	if len(warnings) > 0 {
		_, _ = out.WriteString(",\n  \"Warnings\": ")
		writeArray(out, "  ", slices.Values(warnings))
	}
	_, _ = out.WriteString("\n}\n")
	_ = out.Flush()
	return nil
}

// writeArray writes items one by one, each on lines that begin with prefix. It ends early if the
// client has gone.
func writeArray[T any](out *bufio.Writer, prefix string, items iter.Seq[T]) {
	separator := "[\n" + prefix + "  "
	var text []byte // of items that write themselves, used again for each
	for item := range items {
		if _, err := out.WriteString(separator); err != nil {
			return
		}
		if a, ok := any(item).(appender); ok {
			var err error
			if text, err = a.AppendIndent(text[:0], prefix+"  "); err == nil {
				_, _ = out.Write(text)
				separator = ",\n" + prefix + "  "
				continue
			}
		}
		encode(trimNewline{out}, prefix+"  ", item)
		separator = ",\n" + prefix + "  "
	}
	if separator[0] == '[' {
		_, _ = out.WriteString("[]")
		return
	}
	_, _ = out.WriteString("\n" + prefix + "]")
}

// An appender writes itself as encode does, but faster: many of them are in one answer.
// After an error encode writes it.
type appender interface {
	AppendIndent(dst []byte, prefix string) ([]byte, error)
}

// encode writes v as indented JSON. HTML is not escaped, because the type of the
// answer is JSON.
func encode(w io.Writer, prefix string, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	_ = e.Encode(v)
}

// trimNewline removes the line feed that json.Encoder writes after each value. The
// encoder writes a value in one call.
type trimNewline struct{ w io.Writer }

// Write implements io.Writer.
func (l trimNewline) Write(p []byte) (int, error) {
	n, err := l.w.Write(p[:len(p)-1])
	return n + 1, err
}

// replyText answers pieces of text.
func replyText(w http.ResponseWriter, pieces iter.Seq[string]) error {
	header(w, textType, http.StatusOK)
	out := bufio.NewWriterSize(w, 64<<10)
	for piece := range pieces {
		if _, err := out.WriteString(piece); err != nil {
			return nil
		}
	}
	_ = out.Flush()
	return nil
}

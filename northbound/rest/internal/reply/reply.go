// Package reply writes the answers of the HTTP API: values as JSON or text, lists item by item,
// and errors with their status.
//
// A handler returns an error before it has written anything of its answer; [Fail] writes it.
// An error while an answer is written means that the client has disconnected. It is ignored,
// because the server cannot tell anybody.
package reply

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A statusError is an error with an HTTP status. Other errors are answered with 500.
type statusError struct {
	// An HTTP status code from 400 to 599.
	status int
	err    error
	failed []wire.Invalid // the values that caused it; nil: not known
}

// Error omits the status: the answer already has it in its first line.
func (e *statusError) Error() string { return e.err.Error() }

// Unwrap returns the error without the status.
func (e *statusError) Unwrap() error { return e.err }

// Status returns err with an HTTP status. Use it for mistakes of the client and for
// conditions that a client should distinguish.
func Status(status int, err error) error { return &statusError{status: status, err: err} }

// Detailed returns err with an HTTP status and the values that caused it. The answer lists
// these values under "Failed", so that a client can show each mistake at its place.
func Detailed(status int, err error, failed []wire.Invalid) error {
	return &statusError{status, err, failed}
}

// NotFound returns err with status 404. It is also the answer of an agent that lacks a
// part, such as VPP.
func NotFound(err error) error { return Status(http.StatusNotFound, err) }

// BadRequest returns err with status 400, or nil for nil.
func BadRequest(err error) error {
	if err == nil {
		return nil
	}
	return Status(http.StatusBadRequest, err)
}

// Fail answers an error as JSON.
func Fail(w http.ResponseWriter, err error) {
	answer, status := wire.Failure{Error: err.Error()}, http.StatusInternalServerError
	if s, ok := errors.AsType[*statusError](err); ok {
		status, answer.Failed = s.status, s.failed
	}
	Header(w, JSONType, status)
	Encode(w, "", answer)
}

const (
	JSONMedia = "application/json"
	JSONType  = "application/json; charset=UTF-8"
	TextType  = "text/plain; charset=UTF-8"
)

// Header writes the status and headers. nosniff keeps browsers from executing
// answers as scripts.
func Header(w http.ResponseWriter, contentType string, status int) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}

// Page is Header for something that a browser shows as a page, also a picture: it can load nothing, run nothing, be in
// no frame of another page, and send forms to this server only.
func Page(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	Header(w, contentType, http.StatusOK)
}

// Unstored forbids that the answer is stored: it has a secret.
func Unstored(w http.ResponseWriter) { w.Header().Set("Cache-Control", "no-store") }

// JSON answers v as indented JSON.
func JSON(w http.ResponseWriter, v any) error {
	Header(w, JSONType, http.StatusOK)
	Encode(w, "", v)
	return nil
}

// Array answers a list. It encodes item by item, so that memory does not grow
// with its length.
func Array[T any](w http.ResponseWriter, items iter.Seq[T]) error {
	Header(w, JSONType, http.StatusOK)
	out := bufio.NewWriterSize(w, 64<<10)
	writeArray(out, "", items)
	_ = out.WriteByte('\n')
	_ = out.Flush()
	return nil
}

// Plan writes a wire.Plan item by item: it may have a hundred thousand operations. p has the other lists.
func Plan(w http.ResponseWriter, operations iter.Seq[wire.Operation], p wire.Plan) error {
	Header(w, JSONType, http.StatusOK)
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString("{\n  \"Operations\": ")
	writeArray(out, "  ", operations)
	_, _ = out.WriteString(",\n  \"Invalid\": ")
	writeArray(out, "  ", slices.Values(p.Invalid))
	field(out, "  ", "Unknown", slices.Values(p.Unknown))
	field(out, "  ", "Warnings", slices.Values(p.Warnings))
	_, _ = out.WriteString("\n}\n")
	_ = out.Flush()
	return nil
}

// A Record is a wire.Record of which the lists are made while they are written. It can name
// the same value of megabytes several times.
type Record struct {
	Head wire.Record // without lists
	// Each sequence starts twice: to see whether it is empty, and to write it. So it must be
	// repeatable.
	Values            iter.Seq[wire.KeyValue]
	Planned, Executed iter.Seq[wire.Operation]
	NotReadBack       iter.Seq[string]
}

// One answers one record.
func One(w http.ResponseWriter, r Record) error {
	Header(w, JSONType, http.StatusOK)
	out := bufio.NewWriterSize(w, 64<<10)
	r.write(out, "")
	_ = out.WriteByte('\n')
	_ = out.Flush()
	return nil
}

// write writes the record as Encode writes a wire.Record, on lines that begin with prefix.
func (r Record) write(out *bufio.Writer, prefix string) {
	var head bytes.Buffer
	Encode(&head, prefix, r.Head)
	_, _ = out.Write(bytes.TrimSuffix(head.Bytes(), []byte("\n"+prefix+"}\n")))
	prefix += "  "
	field(out, prefix, "Values", r.Values)
	field(out, prefix, "Planned", r.Planned)
	field(out, prefix, "Executed", r.Executed)
	field(out, prefix, "NotReadBack", r.NotReadBack)
	_, _ = out.WriteString("\n" + prefix[2:] + "}")
}

// field writes a list as a further field of an object, unless it is empty.
func field[T any](out *bufio.Writer, prefix, name string, items iter.Seq[T]) {
	for range items {
		_, _ = out.WriteString(",\n" + prefix + `"` + name + `": `)
		writeArray(out, prefix, items)
		return
	}
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
		if r, ok := any(item).(Record); ok {
			r.write(out, prefix+"  ")
			separator = ",\n" + prefix + "  "
			continue
		}
		if a, ok := any(item).(appender); ok {
			var err error
			if text, err = a.AppendIndent(text[:0], prefix+"  "); err == nil {
				_, _ = out.Write(text)
				separator = ",\n" + prefix + "  "
				continue
			}
		}
		Encode(trimNewline{out}, prefix+"  ", item)
		separator = ",\n" + prefix + "  "
	}
	if separator[0] == '[' {
		_, _ = out.WriteString("[]")
		return
	}
	_, _ = out.WriteString("\n" + prefix + "]")
}

// An appender writes itself as Encode does, but faster: many of them are in one answer.
// After an error Encode writes it.
type appender interface {
	AppendIndent(dst []byte, prefix string) ([]byte, error)
}

// Encode writes v as indented JSON. HTML is not escaped, because the type of the
// answer is JSON.
func Encode(w io.Writer, prefix string, v any) {
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

// Text answers pieces of text.
func Text(w http.ResponseWriter, pieces iter.Seq[string]) error {
	Header(w, TextType, http.StatusOK)
	out := bufio.NewWriterSize(w, 64<<10)
	for piece := range pieces {
		if _, err := out.WriteString(piece); err != nil {
			return nil
		}
	}
	_ = out.Flush()
	return nil
}

// Mapped yields f of each item. Values are converted one by one while the answer is
// written, so that a long list needs little memory. The items are kept by the caller; only
// one converted item is in memory at a time.
func Mapped[T, U any](items []T, f func(T) U) iter.Seq[U] {
	return func(yield func(U) bool) {
		for _, it := range items {
			if !yield(f(it)) {
				return
			}
		}
	}
}

// ErrorText returns the message of an error, or "". JSON omits an empty text.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

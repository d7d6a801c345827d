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

// A statusError is answered with another status than 500.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

func notFound(err error) error { return statusError{http.StatusNotFound, err} }

// bad says that err, if any, is the fault of the one who asks.
func badRequest(err error) error {
	if err == nil {
		return nil
	}
	return statusError{http.StatusBadRequest, err}
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if s, ok := errors.AsType[statusError](err); ok {
		status = s.status
	}
	header(w, jsonType, status)
	encode(w, "", wire.Failure{Error: err.Error()})
}

const (
	jsonType = "application/json; charset=UTF-8"
	textType = "text/plain; charset=UTF-8"
)

func header(w http.ResponseWriter, contentType string, status int) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}

// Writing an answer fails only when the client has gone, and nobody has to know.

func replyJSON(w http.ResponseWriter, v any) error {
	header(w, jsonType, http.StatusOK)
	encode(w, "", v)
	return nil
}

// replyArray writes items one by one.
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
	for item := range items {
		if _, err := out.WriteString(separator); err != nil {
			return
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

func encode(w io.Writer, prefix string, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	_ = e.Encode(v)
}

// lineless leaves out the line feed after what Encode writes at once.
type trimNewline struct{ w io.Writer }

func (l trimNewline) Write(p []byte) (int, error) {
	n, err := l.w.Write(p[:len(p)-1])
	return n + 1, err
}

// replyText writes pieces of text one by one.
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

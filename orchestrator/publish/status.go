package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/keyplane/keyplane/scheduler"
)

// A status is the published JSON, a ligato.kvscheduler.ValueStatus.
type status struct {
	Key     string   `json:"key"`
	State   string   `json:"state"`
	Error   string   `json:"error,omitempty"`
	Last    string   `json:"last_operation,omitempty"`
	Details []string `json:"details,omitempty"`
}

// maxText bounds the error, and the sum of the details, in bytes. kvdbsync.MaxApply
// statuses then fit into one request of every store.
const maxText = 2048

// statusOf converts a status of the scheduler. It does not alias the details.
func statusOf(st *scheduler.Status) *status {
	out := &status{Key: st.Key, State: st.State.String(), Details: slices.Clip(st.Details)}
	if st.Err != nil {
		out.Error = st.Err.Error()
	}
	if st.Last != scheduler.Verb(0) {
		out.Last = st.Last.String()
	}
	return out
}

// removed returns the last status of a key.
func removed(key string) *status {
	return &status{Key: key, State: scheduler.Removed.String(), Last: scheduler.Delete.String()}
}

// line returns the status of a derived value as a detail of its base value.
func (s *status) line() string {
	out := s.Key + " is " + s.State
	if why := strings.Join(append(s.Details, s.Error), ", "); why != "" {
		out += ": " + strings.TrimSuffix(why, ", ")
	}
	return out
}

// json returns the status on one line. Equal statuses have equal bytes.
func (s *status) json() []byte {
	short := *s
	short.Error = cut(s.Error, maxText)
	short.Details = cutAll(s.Details, maxText)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(short) // invalid UTF-8 is replaced, so there is no error
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// cut shortens text to at most n bytes, and marks the cut.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// cutAll keeps the first lines up to n bytes in total, and counts the others.
func cutAll(lines []string, n int) []string {
	for i, line := range lines {
		if n -= len(line); n < 0 && i > 0 {
			return append(lines[:i:i], fmt.Sprintf("and %d more", len(lines)-i))
		}
	}
	if n < 0 {
		return []string{cut(lines[0], maxText)}
	}
	return lines
}

package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// A status is what stands under a key: the JSON of a ligato.kvscheduler.ValueStatus.
type status struct {
	Key     string   `json:"key"`
	State   string   `json:"state"`
	Error   string   `json:"error,omitempty"`
	Last    string   `json:"last_operation,omitempty"`
	Details []string `json:"details,omitempty"`
}

// maxText is the most bytes of the error, and of all details, so that what stores take
// at once is enough for kvdbsync.MaxApply keys.
const maxText = 2048

func statusOf(st *scheduler.Status) *status {
	out := &status{Key: st.Key, State: st.State.String(), Details: st.Details[:len(st.Details):len(st.Details)]}
	if st.Err != nil {
		out.Error = st.Err.Error()
	}
	if st.Last != kvscheduler.TxnOperation_UNDEFINED {
		out.Last = st.Last.String()
	}
	return out
}

// removed is the last that is said of a key.
func removed(key string) *status {
	return &status{Key: key, State: kvscheduler.ValueState_REMOVED.String(), Last: kvscheduler.TxnOperation_DELETE.String()}
}

// line is the status of a derived value as a detail of the declared one.
func (s *status) line() string {
	out := s.Key + " is " + s.State
	if why := strings.Join(append(s.Details, s.Error), ", "); why != "" {
		out += ": " + strings.TrimSuffix(why, ", ")
	}
	return out
}

// json is one line. Equal statuses have equal bytes.
func (s *status) json() []byte {
	short := *s
	short.Error = cut(s.Error, maxText)
	short.Details = cutAll(s.Details, maxText)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(short) // of text that is not UTF-8 it replaces what is wrong
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// cut shortens text to at most n bytes and a sign that there was more.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// cutAll keeps the first lines that have at most n bytes in all, and tells how many
// it left out.
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

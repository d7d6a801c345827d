// Package summary defines the short text by which an agent tells a store how it is, so that
// one listing shows a whole fleet:
//
//	/vnf-agent-fleet/vpp1   {"label":"vpp1","version":"v1.2.0","time":"2026-05-01T12:00:00Z","period":60,...}
//
// The keys of all agents have a prefix of their own. A program that lists or watches
// /vnf-agent/ never meets them, and a reader of the fleet does not meet the configuration.
//
// Unlike published status, a summary outlives its agent: its time says when the agent was
// last seen. Times are those of the agent's clock. Package orchestrator/publish writes
// summaries, agentctl fleet reads them.
package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Prefix is the common prefix of the summaries of all agents.
const Prefix = "/vnf-agent-fleet/"

// Key returns the key of an agent's summary.
func Key(label string) string { return Prefix + label }

// A Summary is what one agent says about itself.
type Summary struct {
	Label   string    `json:"label"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	// Time is when the agent wrote the summary. It writes the next one within Period, which
	// is in seconds.
	Time   time.Time `json:"time"`
	Period int       `json:"period"`
	// Ended says that the agent ended in an orderly way after this summary.
	Ended bool `json:"ended,omitempty"`
	// States counts the declared values by the name of their state, such as CONFIGURED.
	States map[string]int `json:"states"`
	// Derived counts the derived values that are not as declared in the same way. Earlier releases had none.
	Derived map[string]int `json:"derived,omitempty"`
	// Oldest is the value that has been PENDING for the longest time; nil: none is.
	Oldest *Waiting `json:"oldest_pending,omitempty"`
}

// A Waiting is a value that waits for others.
type Waiting struct {
	Key   string    `json:"key"` // without the prefix of the agent
	Since time.Time `json:"since"`
}

// Text returns the summary as the store holds it.
func (s Summary) Text() []byte {
	out, _ := json.Marshal(s) // every summary has a JSON form
	return out
}

// ErrForeign reports a text that is no summary.
var ErrForeign = errors.New("not the summary of an agent")

// Parse reads the summary under a key. Fields that later releases add are ignored.
func Parse(key string, text []byte) (s Summary, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if label := strings.TrimPrefix(key, Prefix); s.Label == "" || s.Label != label {
		return Summary{}, fmt.Errorf("%w: label is %q; expected %q, as in its key", ErrForeign, s.Label, label)
	}
	for state, n := range s.States {
		if n < 0 {
			return Summary{}, fmt.Errorf("%w: %d values are %s; expected no negative number", ErrForeign, n, state)
		}
	}
	return s, nil
}

// missed is the number of periods after which a silent agent counts as lost. One late
// summary is no reason: a store may be down for a moment.
const missed = 3

// Lost reports that the agent has been silent for too long, without having ended.
func (s Summary) Lost(now time.Time) bool {
	return !s.Ended && now.Sub(s.Time) > missed*time.Duration(s.Period)*time.Second
}

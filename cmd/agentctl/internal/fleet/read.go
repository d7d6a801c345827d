package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/summary"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Prefixes of the keys of one agent, behind its label.
const (
	configPrefix = "config/"
	statusPrefix = "config-status/"
	healthKey    = "check/status/v1/agent"
)

// A reader reads agents from a store.
type reader struct {
	s     *session.Session
	store kvdbsync.Store
	now   time.Time
}

// agents returns all agents, sorted by label. With scan, those without a summary are found by
// their other keys.
func (r reader) agents(ctx context.Context, scan bool) ([]Agent, error) {
	pairs, err := r.store.List(ctx, summary.Prefix)
	if err != nil {
		return nil, err
	}
	known := map[string]Agent{}
	for _, p := range pairs {
		sum, err := summary.Parse(p.Key, p.Value)
		if err != nil {
			// Others may write there. One bad text must not hide the fleet.
			fmt.Fprintf(r.s.Err, "agentctl: %s: %s\n", show.Line(p.Key), show.Remote(err.Error()))
			continue
		}
		known[sum.Label] = agentOf(sum, r.now)
	}
	if scan {
		pairs, err = r.store.List(ctx, session.AllAgents)
		if err != nil {
			return nil, err
		}
		for label, a := range scanned(pairs) {
			if has, ok := known[label]; ok {
				has.Declared = a.Declared
				a = has
			}
			known[label] = a
		}
	}
	out := make([]Agent, 0, len(known)) // JSON has a list also of none
	for _, label := range slices.Sorted(maps.Keys(known)) {
		out = append(out, known[label])
	}
	return out, nil
}

// agentOf returns the agent that wrote a summary.
func agentOf(sum summary.Summary, now time.Time) Agent {
	a := Agent{Label: sum.Label, Version: sum.Version, Started: &sum.Started, LastSeen: &sum.Time, States: sum.States, Derived: sum.Derived}
	if sum.Oldest != nil {
		a.Oldest = &Pending{Key: sum.Oldest.Key, Since: &sum.Oldest.Since}
	}
	switch {
	case sum.Ended:
		a.State = stateEnded
	case sum.Lost(now):
		a.State = stateLost
	default:
		a.State = stateByValues(a)
	}
	return a
}

// stateByValues returns the state of an agent that runs.
func stateByValues(a Agent) string {
	if a.problems() > 0 {
		return stateNotOK
	}
	return stateOK
}

// scanned returns the agents that have keys below session.AllAgents. Pairs are sorted, so the
// first PENDING value stands for the oldest one, whose time is not published.
func scanned(pairs []kvdbsync.Pair) map[string]Agent {
	out := map[string]Agent{}
	published := map[string]bool{} // labels of agents that run, as the keys of their sessions say
	for _, p := range pairs {
		label, key, ok := strings.Cut(strings.TrimPrefix(p.Key, session.AllAgents), "/")
		if !ok || label == "" {
			continue
		}
		a, seen := out[label]
		if !seen {
			a = Agent{Label: label, States: map[string]int{}}
		}
		switch {
		case strings.HasPrefix(key, configPrefix):
			a.Declared++
		case strings.HasPrefix(key, statusPrefix):
			published[label] = true
			a.add(p.Value)
		case key == healthKey:
			published[label] = true
			a.addHealth(p.Value)
		}
		out[label] = a
	}
	for label, a := range out {
		a.State = stateUnknown
		if published[label] {
			a.State = stateByValues(a)
		}
		out[label] = a
	}
	return out
}

// A keyStatus is the published status of one key, a ligato.kvscheduler.ValueStatus. Details
// are also those of derived values.
type keyStatus struct {
	Key     string   `json:"key"`
	State   string   `json:"state"`
	Error   string   `json:"error"`
	Details []string `json:"details"`
}

// derived counts the derived values that are not as declared, by their states: the details have a line of each.
// The published text has no other field for them, because strict readers of vpp-agent 3.5 refuse unknown fields.
func (st keyStatus) derived() map[string]int {
	out := map[string]int{}
	for _, line := range st.Details {
		for _, state := range []string{"PENDING", "INVALID", "FAILED", "RETRYING", "UNIMPLEMENTED", "MISSING"} {
			if before, _, _ := strings.Cut(line, ": "); strings.HasSuffix(before, " is "+state) {
				out[state]++
			}
		}
	}
	return out
}

// add counts a published status. A text that is none counts as a state of its own, so that it
// is noticed.
func (a *Agent) add(text []byte) {
	var st keyStatus
	if err := json.Unmarshal(text, &st); err != nil || st.State == "" {
		st.State = "UNREADABLE"
	}
	a.States[st.State]++
	for state, n := range st.derived() {
		if a.Derived == nil {
			a.Derived = map[string]int{}
		}
		a.Derived[state] += n
	}
	if st.State == "PENDING" && a.Oldest == nil {
		a.Oldest = &Pending{Key: st.Key}
	}
}

// addHealth takes the version and the times from the health of an agent. vpp-agent 3.5
// publishes the same. A json.Number reads both notations of numbers that protobuf allows.
func (a *Agent) addHealth(text []byte) {
	var st struct {
		BuildVersion string      `json:"build_version"`
		StartTime    json.Number `json:"start_time"`
		LastUpdate   json.Number `json:"last_update"`
	}
	if json.Unmarshal(text, &st) != nil {
		return
	}
	a.Version = st.BuildVersion
	for at, number := range map[**time.Time]json.Number{&a.Started: st.StartTime, &a.LastSeen: st.LastUpdate} {
		if seconds, err := number.Int64(); err == nil && seconds > 0 {
			moment := time.Unix(seconds, 0).UTC()
			*at = &moment
		}
	}
}

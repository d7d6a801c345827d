// Package fleet has the commands of agentctl about many agents: how they are, how two differ,
// and how a change reaches them batch by batch.
//
// All of them read what the agents publish in the store, and ask no agent. So they work from
// any host that reaches the store, also for agents that are down.
//
//	read.go      agents from their summaries, or from all keys
//	fleet.go     the table
//	diff.go      two labels
//	template.go  one file for many labels
//	apply.go     apply: labels, plan
//	rollout.go   apply: batches, waiting, undoing
//	outcome.go   apply: what the published status says about a change
package fleet

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Command returns the command fleet.
func Command(s *session.Session) *cobra.Command {
	var labels []string
	var notOK, scan bool
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Shows all agents of a store, and changes many at once",
		Long: "Fleet prints a line for each agent that publishes a summary into the store (publish-summary in orchestrator.conf): how many values are\n" +
			"as declared and how many are not, the value that has been PENDING for the longest time, the version, and when the agent was last seen.\n" +
			"LOST: the agent has written nothing for three periods. ENDED: it ended in an orderly way. Nobody is asked but the store.\n\n" +
			"With --scan, it also reads all other keys of all agents. Then it shows agents without a summary, too, also those of vpp-agent 3.5, by\n" +
			"their published status and health. UNKNOWN: there are keys for this label, but no agent has published anything.",
		Example: "  agentctl -e 10.0.0.5:2379 fleet\n  agentctl fleet --labels 'edge-*' --not-ok -o json\n  agentctl --store redis fleet --store-config redis.conf",
		Args:    session.ExpectArgs(),
	}
	cmd.Flags().StringSliceVar(&labels, "labels", nil, labelsHelp)
	cmd.Flags().BoolVar(&notOK, "not-ok", false, "leave out the agents whose values are all as declared")
	cmd.Flags().BoolVar(&scan, "scan", false, "read all keys of all agents, which takes longer")
	store := s.DirectStoreFlag(cmd)
	f := show.FormatFlag(cmd, s)
	cmd.RunE = store.Read(func(ctx context.Context, store kvdbsync.Store, _ []string) error {
		if err := checkPatterns(labels); err != nil {
			return err
		}
		now := time.Now()
		r := reader{s: s, store: store, now: now}
		all, err := r.agents(ctx, scan)
		if err != nil {
			return err
		}
		warnUnused(s, labels, all)
		all = slices.DeleteFunc(all, func(a Agent) bool {
			return notOK && a.State == stateOK || len(labels) > 0 && !matches(labels, a.Label)
		})
		return f.Write(s.Out, all, func(out io.Writer) error { return table(s, out, all, now) })
	})
	cmd.AddCommand(apply(s, store), diff(s, store), forget(s, store))
	return cmd
}

// labelsHelp describes --labels.
const labelsHelp = "labels of agents, or patterns such as 'edge-*' with the wildcards * ? [a-z]; may be repeated or separated by commas"

// The states of an agent.
const (
	stateOK      = "OK"
	stateNotOK   = "NOT OK"
	stateEnded   = "ENDED"
	stateLost    = "LOST"
	stateUnknown = "UNKNOWN"
)

// An Agent is one line of the table. The names of its fields are an interface of scripts.
type Agent struct {
	Label   string `json:"label"`
	State   string `json:"state"` // one of the states above
	Version string `json:"version,omitempty"`
	// Nil: not known.
	Started  *time.Time `json:"started,omitempty"`
	LastSeen *time.Time `json:"last_seen,omitempty"`
	// Declared values by the name of their state, as the agent last said. Agents of earlier releases also count values that
	// nobody declares, such as those that are OBTAINED.
	States map[string]int `json:"states"`
	// Derived values that are not as declared, such as an address of an interface, likewise.
	Derived map[string]int `json:"derived,omitempty"`
	// Oldest is the value that has been PENDING for the longest time.
	Oldest *Pending `json:"oldest_pending,omitempty"`
	// Declared is the number of keys below config/, with --scan.
	Declared int `json:"declared,omitempty"`
}

// A Pending is a value that waits for others. Since is nil if the agent does not publish it.
type Pending struct {
	Key   string     `json:"key"`
	Since *time.Time `json:"since,omitempty"`
}

// isDeclared reports whether values in a state are declared. Published status, and summaries of earlier releases, have others.
func isDeclared(state string) bool {
	return !slices.Contains([]string{"OBTAINED", "DISCOVERED", "REMOVED", "NONEXISTENT"}, state)
}

// isOK reports whether values in a state are as declared, or are not declared.
func isOK(state string) bool { return state == stateConfigured || !isDeclared(state) }

// stateConfigured is the state of a value that is as declared.
const stateConfigured = "CONFIGURED"

// problems returns the number of values that are not as declared.
func (a Agent) problems() (n int) {
	for state, count := range a.States {
		if !isOK(state) {
			n += count
		}
	}
	for _, count := range a.Derived {
		n += count
	}
	return n
}

// table prints the agents, and the numbers of agents in each state.
func table(s *session.Session, out io.Writer, all []Agent, now time.Time) error {
	t := show.NewTable(out, "LABEL", "STATE", "OK", "NOT OK", "OLDEST PENDING", "VERSION", "LAST SEEN")
	t.Whole("LABEL", "STATE")
	count := map[string]int{}
	for _, a := range all {
		count[a.State]++
		ok, wrong := a.counts()
		t.Row(a.Label, a.State, ok, wrong, a.pending(now), a.Version, ago(a.LastSeen, now))
	}
	if err := t.End(); err != nil {
		return err
	}
	var sums []string
	for _, state := range slices.Sorted(maps.Keys(count)) {
		sums = append(sums, fmt.Sprintf("%d %s", count[state], state))
	}
	if len(sums) == 0 {
		sums = []string{"none of them is selected, or none publishes a summary"}
	}
	_, err := fmt.Fprintf(s.Err, "%s: %s\n", show.Count(len(all), "agent"), strings.Join(sums, ", "))
	return err
}

// counts returns the columns OK and NOT OK: "98" and "1 FAILED, 2 PENDING".
func (a Agent) counts() (ok, wrong string) {
	n, others := 0, []string{}
	for _, state := range slices.Sorted(maps.Keys(a.States)) {
		switch count := a.States[state]; {
		case state == stateConfigured:
			n += count
		case isDeclared(state) && count > 0:
			others = append(others, fmt.Sprintf("%d %s", count, state))
		}
	}
	for _, state := range slices.Sorted(maps.Keys(a.Derived)) {
		others = append(others, fmt.Sprintf("%d derived %s", a.Derived[state], state))
	}
	if a.State == stateUnknown {
		return "", fmt.Sprintf("%d declared", a.Declared)
	}
	return fmt.Sprint(n), strings.Join(others, ", ")
}

// pending returns the column OLDEST PENDING.
func (a Agent) pending(now time.Time) string {
	switch {
	case a.Oldest == nil:
		return ""
	case a.Oldest.Since == nil:
		return a.Oldest.Key
	}
	return a.Oldest.Key + " (" + show.Short(max(0, now.Sub(*a.Oldest.Since)).Truncate(time.Second)) + ")"
}

// ago returns how long ago a moment was. The clock of an agent may be ahead of this one.
func ago(at *time.Time, now time.Time) string {
	if at == nil {
		return "never"
	}
	return show.Short(max(0, now.Sub(*at)).Truncate(time.Second)) + " ago"
}

// checkPatterns refuses an invalid pattern before anything is read.
func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" || strings.Contains(p, "/") {
			return session.Usagef("--labels: %q: expected a label without slash, or a pattern such as 'edge-*'", p)
		}
	}
	return nil
}

// warnUnused names the labels and patterns that fit no agent that runs: they may be misspelt.
func warnUnused(s *session.Session, patterns []string, all []Agent) {
	for _, p := range patterns {
		if !slices.ContainsFunc(all, func(a Agent) bool { return a.runs() && matches([]string{p}, a.Label) }) {
			fmt.Fprintf(s.Err, "agentctl: warning: --labels: %s fits no agent that runs and publishes a summary\n", show.Line(p))
		}
	}
}

// runs reports that the agent has published something, and has not ended or been silent since.
func (a Agent) runs() bool { return a.State == stateOK || a.State == stateNotOK }

// isPattern reports that a text stands for any number of labels.
func isPattern(text string) bool { return strings.ContainsAny(text, `*?[\`) }

// matches reports whether a label fits into one of the patterns, which are valid.
func matches(patterns []string, label string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, label)
		return ok
	})
}

// Package top has the command top of agentctl, which shows the work of the agent: states, sources,
// rates, and the verbs of descriptors that take longest.
//
//	sample.go  reads counters from the agent
//	view.go    turns two samples into text; it is pure
//	screen.go  draws that text on a terminal again and again
//
// The counters come from snapshots, so no transaction waits for them. They have no events, so the
// agent is asked in intervals.
package top

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// shortest is the shortest interval: below it, the agent would mostly answer questions.
const shortest = 100 * time.Millisecond

// Command returns the command top.
func Command(s *session.Session) *cobra.Command {
	var interval time.Duration
	live := show.Draws(s.Out, s.Env)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Shows states, sources, rates and the slowest verbs, live",
		Long: "Top shows the number of values by state, the sources, the rates of transactions and operations, and the verbs of descriptors that\n" +
			"take longest on average. On a terminal it draws them again and again, until q or Ctrl-C is pressed, or --timeout ends it.\n" +
			"Otherwise, or if TERM is dumb, it prints them once, without rates.",
		Example: "  agentctl top\n  agentctl top --interval 500ms\n  agentctl top > snapshot.txt",
		Args:    session.ExpectArgs(),
	}
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two drawings, and of the rates")
	cmd.RunE = s.WithAgentWhile(&live, func(ctx context.Context, _ []string) error {
		if interval < shortest {
			return session.Usagef("interval: %v: expected at least %v", interval, shortest)
		}
		now, err := read(ctx, s)
		if err != nil {
			return err
		}
		if live {
			return (&screen{session: s, interval: interval, now: now}).run(ctx)
		}
		_, err = io.WriteString(s.Out, view(nil, now, 0, 0))
		return err
	})
	return cmd
}

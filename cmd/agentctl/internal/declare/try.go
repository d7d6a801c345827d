package declare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// defaultTrial is the time of a trial without the flag --confirm.
const defaultTrial = time.Minute

// The times that an agent accepts for a trial.
const (
	shortestTrial = time.Second
	longestTrial  = 24 * time.Hour
)

// try returns the command that declares files for a time.
func try(s *session.Session) *cobra.Command {
	c := change{Session: s, atomic: true}
	var list, cancel bool
	cmd := &cobra.Command{
		Use:        "try FILE... --confirm DURATION",
		SuggestFor: []string{"trial"},
		Short:      "Declares values of files for a time; confirm makes them permanent",
		Long: "Try does what apply --atomic does, but the agent takes the change back by itself after the time of --confirm, unless\n" +
			"agentctl confirm follows. So a change that cuts off the network of its author ends. The agent saves what takes the change back\n" +
			"before it applies anything: after a crash the time goes on, and what is due is taken back before anything else is applied.\n\n" +
			"A trial changes the values that agentctl has declared, with their priority: confirming changes nothing in the network. Null values and\n" +
			"--replace withdraw values of agentctl for the time; values that a store declares are not withdrawn. During a trial, the data source\n" +
			"takes no other change.\n" + fileHelp + "\n\n" +
			"Values of a store, --store, cannot be tried: other agents and people write there too, so taking a change back could undo theirs.\n" +
			"Try them with this command, and then write them with apply --store; the trial ends with try --cancel.\n\n" +
			"--list prints the trials of the agent, --cancel takes the trial back at once.",
		Example:           "  agentctl try network.yaml --confirm 60s\n  agentctl try --list\n  agentctl try --cancel",
		ValidArgsFunction: names.CompleteFile,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := noStore(cmd); err != nil {
				return err
			}
			if !list && !cancel {
				return fileArgs(cmd, args)
			}
			if len(args) > 0 || list && cancel {
				return errors.New("--list, --cancel and FILE exclude each other: expected one of them")
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&c.trial, "confirm", defaultTrial, "take the change back after this time, 1s to 24h, unless it is confirmed")
	cmd.Flags().BoolVar(&c.replace, "replace", false, "withdraw all other values of the data source for the time")
	c.allowEmpty(cmd)
	cmd.Flags().StringVar(&c.source, "source", session.Layer, "declare the values with this data source")
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait until all values are configured")
	cmd.Flags().BoolVar(&list, "list", false, "print the trials")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "take the trial of the data source back now")
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgentUntil(answerTime, func(ctx context.Context, args []string) error {
		switch {
		case list:
			return listTrials(ctx, s, f)
		case cancel:
			return endTrial(ctx, s, "/configuration/cancel", c.source, "Taken back: %s of %s.\n")
		}
		// Without a time, the agent would not take the change back.
		if c.trial < shortestTrial || c.trial > longestTrial {
			return session.Usagef("--confirm: %v: expected %v to %v", c.trial, shortestTrial, longestTrial)
		}
		if err := c.declareFiles(ctx, args); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.Out, "On trial for %v; agentctl confirm makes it permanent.\n", c.trial)
		return err
	})
	return cmd
}

// confirm returns the command that makes a trial permanent.
func confirm(s *session.Session) *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:   "confirm",
		Short: "Makes the values of try permanent",
		Long: "Confirm makes the change of the running trial permanent: agentctl has declared its values. Without a running trial, the exit code is 1.\n" +
			"No store has trials, so --store is refused.",
		Example: "  agentctl confirm",
		Args:    cobra.MatchAll(session.ExpectArgs(), func(cmd *cobra.Command, _ []string) error { return noStore(cmd) }),
	}
	cmd.Flags().StringVar(&source, "source", session.Layer, "confirm the trial of this data source")
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		return endTrial(ctx, s, "/configuration/confirm", source, "Confirmed: %s of %s.\n")
	})
	return cmd
}

// noStore refuses a store for a trial. Without an error, the user would take the values for those
// of the store.
func noStore(cmd *cobra.Command) error {
	if !session.IntoStore(cmd) {
		return nil
	}
	return errors.New("a trial is a change of the agent's own values, not of a store: expected no --store; apply --store writes into a store")
}

// endTrial ends a trial in one of the ways, and prints the number of its values and its source.
func endTrial(ctx context.Context, s *session.Session, path, source, done string) error {
	var t wire.Trial
	if err := s.Request(ctx, http.MethodPost, path, url.Values{"datasrc": {source}}, nil, &t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.Out, done, show.Count(len(t.Keys), "value"), show.Line(t.Source))
	return err
}

// listTrials prints the trials of the agent.
func listTrials(ctx context.Context, s *session.Session, f *show.Format) error {
	all := []wire.Trial{}
	if err := s.Get(ctx, "/configuration/trials", nil, &all); err != nil {
		return err
	}
	return f.Write(s.Out, all, func(to io.Writer) error {
		t := show.NewTable(to, "SOURCE", "KEYS", "BEGUN", "LEFT")
		for _, one := range all {
			left := "being applied"
			if !one.Deadline.IsZero() {
				left = show.Short(max(0, time.Until(one.Deadline)))
			}
			t.Row(one.Source, strconv.Itoa(len(one.Keys)), show.Short(time.Since(one.Begun))+" ago", left)
		}
		return t.End()
	})
}

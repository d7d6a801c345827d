package declare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// longestWait is the longest wait of one request to the agent. A longer one is several requests.
const longestWait = 30 * time.Second

// answerTime is how long the answer to the last request may take after the timeout.
const answerTime = 10 * time.Second

// waitFor returns the command that waits for a state of values.
func waitFor(s *session.Session) *cobra.Command {
	var q wire.Wait
	cmd := &cobra.Command{
		Use:   "wait VALUE|MODEL|all...",
		Short: "Waits until values have a state",
		Long: "Wait returns as soon as all of the values have the state: of a VALUE (a key or a name), of all values\n" +
			"of a MODEL (a name or a pattern such as 'linux.*'), or all. CONFIGURED includes the values derived from them; removed means that no\n" +
			"such value exists. A key need not have a value yet.\n\n" +
			"Values that a store held when the wait began count with their content of then: the agent first reads the stores again. For all, and\n" +
			"for the values of a model, a store that the agent does not reach prevents the end. A wait for a VALUE leaves it out.\n\n" +
			"Exit codes: 0 the values have the state, 1 the timeout has ended, or a value is INVALID, FAILED or UNIMPLEMENTED, which does not\n" +
			"change by itself. Then the values that lack the state are printed. The agent tells the end; it is not asked again and again.",
		Example:           "  agentctl wait all --timeout 30s\n  agentctl wait veth1\n  agentctl wait linux.l3.route --for removed",
		ValidArgsFunction: names.Each(names.CompleteModelOrValue(s)),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("VALUE, MODEL or all is missing")
			}
			return patternsOrKeys(cmd, args)
		},
	}
	state := show.ChoiceFlag(cmd, "for", "configured", "wait for this state", "configured", "removed", "pending", "failed", "invalid", "retrying", "missing", "unimplemented", "obtained", "discovered")
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgentUntil(answerTime, func(ctx context.Context, args []string) error {
		query, err := selection(ctx, s, args, names.Whole)
		if err != nil {
			return err
		}
		q.State, q.Keys, q.Models = state.Value, query["key"], query["model"]
		q.All = len(query) == 0
		out, err := wait(ctx, s, q, time.Now().Add(s.Timeout))
		if err != nil {
			return err
		}
		err = f.Write(s.Out, out, func(to io.Writer) error { return printWaited(to, state.Value, out) })
		return errors.Join(err, waitError(s, state.Value, out))
	})
	return cmd
}

// shownWait is the longest wait of one request where a bar shows how far the work has come.
const shownWait = time.Second

// wait asks the agent until the wait has ended, at the latest at the deadline. On a terminal it
// shows how many values have the state.
func wait(ctx context.Context, s *session.Session, q wire.Wait, deadline time.Time) (out wire.Waited, err error) {
	longest := longestWait
	if show.IsTerminal(s.Err) {
		longest = shownWait
	}
	progress := show.NewProgress(s.Err, s.Env, "waiting", 0)
	defer progress.End()
	for {
		left := time.Until(deadline)
		q.Milliseconds = max(1, min(left, longest).Milliseconds())
		body, err := json.Marshal(q)
		if err != nil {
			return out, err
		}
		out = wire.Waited{}
		if err := s.Request(ctx, http.MethodPost, "/scheduler/wait", nil, body, &out); err != nil {
			return out, err
		}
		if out.Done || out.Hopeless || left <= longest {
			return out, nil
		}
		q.Since = out.Since
		if longest == shownWait {
			progress.At(out.Count-out.MissingCount, out.Count)
		}
	}
}

// printWaited prints the values that lack the state.
func printWaited(to io.Writer, state string, out wire.Waited) error {
	if out.Done {
		_, err := fmt.Fprintf(to, "%s %s.\n", show.Count(out.Count, "value"), nowAre(out.Count, state))
		return err
	}
	t := show.NewTable(to, "STATE", "KEY", "REASON")
	for _, v := range out.Missing {
		t.Row(v.State, v.Key, strings.Join(append(textOf(v.Error), v.Details...), ", "))
	}
	if more := out.MissingCount - len(out.Missing); more > 0 {
		t.Row("", fmt.Sprintf("and %d more", more), "")
	}
	for _, name := range out.Incomplete {
		t.Row("", "", "the source "+name+" has not listed its values since the wait began")
	}
	return t.End()
}

// textOf returns a text as a list; an empty one is none.
func textOf(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// nowAre is the verb of the result, for n values.
func nowAre(n int, state string) string {
	if n == 1 {
		return "is " + state
	}
	return "are " + state
}

// waitError returns the error of a wait that did not reach the state, or nil.
func waitError(s *session.Session, state string, out wire.Waited) error {
	why := fmt.Sprintf("after %v", s.Timeout)
	switch {
	case out.Done:
		return nil
	case out.Hopeless:
		why = "some have failed, and do not change by themselves"
	}
	return fmt.Errorf("%d of %s not %s: %s", out.MissingCount, show.Count(max(out.Count, out.MissingCount), "value"), state, why)
}

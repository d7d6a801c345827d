// Package plan has the commands of agentctl that compare: the effect of files before they are applied, and the
// drift of the system from the declared values.
package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// exitHelp explains the exit codes of such commands.
const exitHelp = "Exit codes: 0 nothing to do, 2 changes, 1 an error."

// Commands returns the commands plan and drift.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{planFiles(s), drift(s)}
}

// planFiles returns the command that shows the effect of files without applying them.
func planFiles(s *session.Session) *cobra.Command {
	var replace bool
	var as string
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Shows the changes that files would cause",
		Long: "Plan prints the changes that the agent would make if the values of the FILEs (- for standard input) were declared. Nothing is changed.\n" +
			"FILE is YAML or JSON: a list of {key, value}, where a null value means removal, or groups such as linuxConfig. Of a folder, all files\n" +
			"that end with .yaml, .yml or .json are read.\n\n" +
			"With --as SOURCE, the values are the whole content of a source, such as etcd: what is not in them is removed. With --as filedb:PATH,\n" +
			"FILE is a new text of the file PATH, so the plan is that of saving it. A warning names each key that keeps the value of another\n" +
			"source. Without --as, the values are planned as if they had the highest priority.\n\n" +
			"+ create, ~ update, - delete, -/+ delete and create again, ... PENDING. The format table has one line for each operation, also those\n" +
			"on parts of values; log is the form of the agent's log.\n\n" +
			exitHelp + " Invalid values are an error; the valid ones are planned anyway.\n" +
			"So are values that nobody knows, because their connection is lost: what they need is found when they are read back.\n" +
			"A TAP whose Linux side somebody has deleted is made again only when the agent tries to use that side, so no plan shows it.",
		Example:           "  agentctl plan new.yaml\n  agentctl plan new.yaml --as filedb:/etc/keyplane/network/routes.yaml\n  agentctl plan network/ --as etcd",
		ValidArgsFunction: names.CompleteFile,
		Args:              session.ExpectSome("FILE"),
		Annotations:       map[string]string{session.TellsChanges: ""},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "plan as if these were the only declared values")
	cmd.Flags().StringVar(&as, "as", "", "plan as the content of this SOURCE, or of the file SOURCE:PATH")
	_ = cmd.RegisterFlagCompletionFunc("as", names.CompleteSource(s)) // fails only without the flag
	f := show.FormatFlag(cmd, s, "log", "table")
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		all, err := documents.Read(s.In, args)
		if err != nil {
			return err
		}
		text := all.Text()
		if replace || as != "" && !strings.Contains(as, ":") {
			text = all.Whole()
		}
		query := url.Values{}
		if replace {
			query.Set("replace", "1")
		}
		if as != "" {
			query.Set("as", as)
		}
		var p wire.Plan
		if err := s.Request(ctx, http.MethodPost, "/scheduler/plan", query, text, &p); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, ", "), err)
		}
		if !slices.Contains([]string{"log", "json", "yaml"}, f.Word()) { // these have them
			show.Warnings(s.Err, p.Warnings)
		}
		changes := show.ChangesOf(p.Operations)
		switch f.Word() {
		case "log":
			err = s.CopyText(ctx, http.MethodPost, "/scheduler/plan", query, text)
		case "table":
			err = planTable(s.Out, p)
		default: // the plan of the valid values is printed before the error about the others
			err = f.Write(s.Out, p, func(out io.Writer) error {
				return show.Changes(out, s.Env, "Plan", changes, len(p.Invalid))
			})
		}
		if err == nil && len(changes) > 0 {
			err = session.ErrChanges
		}
		return errors.Join(err, unknown(p.Unknown), all.Invalid("not part of the plan", p.Invalid))
	})
	return cmd
}

// planTable prints the operations of a plan in the order of their execution.
func planTable(out io.Writer, p wire.Plan) error {
	if len(p.Operations) == 0 {
		_, err := io.WriteString(out, "Nothing to do.\n")
		return err
	}
	return show.OperationsTable(out, p.Operations)
}

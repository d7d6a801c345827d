// Package plan has the commands of agentctl that compare: the effect of files before they are applied, and the
// drift of the system from the declared values.
package plan

import (
	"cmp"
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
	"github.com/keyplane/keyplane/cmd/agentctl/internal/saved"
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

// A planning is a plan of files.
type planning struct {
	*session.Session
	format  *show.Format
	replace bool
	as      string // the source or file whose content the values are; empty: none
	joins   string // the source whose other values stay, as with apply; empty: the plan is another one
	stored  bool   // joins is a store
}

// planFiles returns the command that shows the effect of files without applying them.
func planFiles(s *session.Session) *cobra.Command {
	p := planning{Session: s}
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Shows the changes that files would cause",
		Long: "Plan prints the changes that the agent would make if the values of the FILEs (- for standard input) were declared. Nothing is changed.\n" +
			"FILE is YAML or JSON: a list of {key, value}, where a null value means removal, or groups such as linuxConfig. Of a folder, all files\n" +
			"that end with .yaml, .yml or .json are read.\n\n" +
			"With -o FILE.plan, the plan is that of apply, and is written into that file, with the values and their secrets:\n" +
			"apply --plan FILE.plan makes exactly these changes, or none if the agent would plan others by then. With --store, the plan\n" +
			"is that of apply --store.\n\n" +
			"With --as SOURCE, the values are the whole content of a source, such as etcd: what is not in them is removed. With --as filedb:PATH,\n" +
			"FILE is a new text of the file PATH, so the plan is that of saving it. A warning names each key that keeps the value of another\n" +
			"source. Without --as, the values are planned as if they had the highest priority.\n\n" +
			"+ create, ~ update, - delete, -/+ delete and create again, ... PENDING. The format table has one line for each operation, also those\n" +
			"on parts of values; log is the form of the agent's log.\n\n" +
			exitHelp + " Invalid values are an error; the valid ones are planned anyway.\n" +
			"So are values that nobody knows, because their connection is lost: what they need is found when they are read back.\n" +
			"A TAP whose Linux side somebody has deleted is made again only when the agent tries to use that side, so no plan shows it.",
		Example:           "  agentctl plan new.yaml\n  agentctl plan new.yaml --as filedb:/etc/keyplane/network/routes.yaml\n  agentctl plan network/ --as etcd\n  agentctl plan new.yaml -o new.plan",
		ValidArgsFunction: names.CompleteFile,
		Args:              session.ExpectSome("FILE"),
		Annotations:       map[string]string{session.TellsChanges: ""},
	}
	cmd.Flags().BoolVar(&p.replace, "replace", false, "plan as if these were the only declared values")
	cmd.Flags().StringVar(&p.as, "as", "", "plan as the content of this SOURCE, or of the file SOURCE:PATH")
	_ = cmd.RegisterFlagCompletionFunc("as", names.CompleteSource(s)) // fails only without the flag
	p.format = show.FormatFlag(cmd, s, "log", "table")
	p.format.OrFile(saved.Ending)
	run := s.WithAgent(p.run)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := p.asApply(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// asApply makes the plan that of apply, if the command line asks for that.
func (p *planning) asApply(cmd *cobra.Command) error {
	p.stored = session.IntoStore(cmd)
	if !p.stored && p.format.File() == "" {
		return nil
	}
	if p.as != "" || p.replace {
		return session.Usagef("the plan of apply, with --store or -o FILE%s, excludes --as and --replace", saved.Ending)
	}
	p.joins = session.Layer
	if p.stored {
		p.joins = cmp.Or(p.Store, "etcd")
	}
	return nil
}

// query returns the arguments of the request.
func (p *planning) query() url.Values {
	query := url.Values{}
	switch {
	case p.joins != "":
		return url.Values{"as": {p.joins}, "add": {"1"}, "new": {"1"}}
	case p.replace:
		query.Set("replace", "1")
	}
	if p.as != "" {
		query.Set("as", p.as)
	}
	return query
}

// run plans files, and prints the plan.
func (p *planning) run(ctx context.Context, args []string) error {
	all, err := documents.Read(p.In, args)
	if err != nil {
		return err
	}
	text := all.Text()
	if p.replace || p.as != "" && !strings.Contains(p.as, ":") {
		text = all.Whole()
	}
	var planned wire.Plan
	if err := p.Request(ctx, http.MethodPost, "/scheduler/plan", p.query(), text, &planned); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, ", "), err)
	}
	err = p.print(ctx, planned, text)
	wrong := errors.Join(unknown(planned.Unknown), all.Invalid("not part of the plan", planned.Invalid))
	if p.format.File() != "" && err == nil {
		err = save(p.format.File(), wrong, saved.Plan{Label: p.AgentLabel(), Source: p.joins, Store: p.stored, Document: string(text), Operations: planned.Operations})
	}
	if err == nil && len(show.ChangesOf(planned.Operations)) > 0 {
		err = session.ErrChanges
	}
	return errors.Join(err, wrong)
}

// print prints a plan. That of the valid values is printed before the error about the others.
func (p *planning) print(ctx context.Context, planned wire.Plan, text []byte) error {
	if !slices.Contains([]string{"log", "json", "yaml"}, p.format.Word()) { // these have them
		show.Warnings(p.Err, planned.Warnings)
	}
	switch p.format.Word() {
	case "log":
		return p.CopyText(ctx, http.MethodPost, "/scheduler/plan", p.query(), text)
	case "table":
		return planTable(p.Out, planned)
	}
	return p.format.Write(p.Out, planned, func(out io.Writer) error {
		return show.Changes(out, p.Env, "Plan", show.ChangesOf(planned.Operations), len(planned.Invalid))
	})
}

// save writes a plan into a file. wrong is why it is no plan of all values.
func save(path string, wrong error, p saved.Plan) error {
	if wrong != nil {
		return fmt.Errorf("%s was not written, because the plan is not complete", show.Line(path))
	}
	return p.Write(path)
}

// planTable prints the operations of a plan in the order of their execution.
func planTable(out io.Writer, p wire.Plan) error {
	if len(p.Operations) == 0 {
		_, err := io.WriteString(out, "Nothing to do.\n")
		return err
	}
	return show.OperationsTable(out, p.Operations)
}

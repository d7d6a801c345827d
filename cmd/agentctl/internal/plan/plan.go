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

// planFiles returns the command that shows the effect of files without applying them.
func planFiles(s *session.Session) *cobra.Command {
	var p query
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Shows the changes that files would cause",
		Long: "Plan prints the changes that the agent would make if the values of the FILEs (- for standard input) were declared. Nothing is changed.\n" +
			"FILE is YAML or JSON: a list of {key, value}, where a null value means removal, or groups such as linuxConfig. Of a folder, all files\n" +
			"that end with .yaml, .yml or .json are read.\n\n" +
			"The plan is that of apply with the same flags: the values join those that agentctl has declared, with --source or --store those of\n" +
			"another client or of a store, and with --replace there are no others in that source. --as SOURCE is either of the two flags. With\n" +
			"--as filedb:PATH, FILE is the new text of the file PATH, so the plan is that of saving it: what is not in it is removed. A warning\n" +
			"names each key that keeps the value of another source.\n\n" +
			"With -o FILE.plan, the plan is also written into that file, with the values and their secrets: apply --plan FILE.plan makes exactly\n" +
			"these changes, or none if the agent would plan others by then.\n\n" +
			"+ create, ~ update, - delete, -/+ delete and create again, ... PENDING. The format table has one line for each operation, also those\n" +
			"on parts of values; log is the form of the agent's log.\n\n" +
			exitHelp + " Invalid values are an error; the valid ones are planned anyway.\n" +
			"So are values that nobody knows, because their connection is lost: what they need is found when they are read back.\n" +
			"A TAP whose Linux side somebody has deleted is made again only when the agent tries to use that side, so no plan shows it.",
		Example:           "  agentctl plan new.yaml\n  agentctl plan new.yaml --as filedb:/etc/keyplane/network/routes.yaml\n  agentctl plan network/ --store etcd\n  agentctl plan network/ --replace\n  agentctl plan new.yaml -o new.plan",
		ValidArgsFunction: names.CompleteFile,
		Args:              session.ExpectSome("FILE"),
		Annotations:       map[string]string{session.TellsChanges: ""},
	}
	p.flags(cmd, s)
	f := show.FormatFlag(cmd, s, "log", "table")
	f.OrFile(saved.Ending)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		all, err := documents.Read(s.In, args)
		if err != nil {
			return err
		}
		return p.print(ctx, cmd, s, all, f)
	})
	return cmd
}

// A query is what a plan is asked for.
type query struct {
	as, source string // "": that of apply
	replace    bool
}

// flags adds the flags of plan. Those of apply have the same meaning.
func (q *query) flags(cmd *cobra.Command, s *session.Session) {
	cmd.Flags().BoolVar(&q.replace, "replace", false, "plan as if the source had no other values")
	cmd.Flags().StringVar(&q.source, "source", session.Layer, "plan values that this data source declares")
	cmd.Flags().StringVar(&q.as, "as", "", "plan values of this SOURCE, a client or a store, or a new text of the file SOURCE:PATH")
	_ = cmd.RegisterFlagCompletionFunc("as", names.CompleteSource(s)) // fails only without the flag
}

// arguments returns the arguments of the request for a plan. A name that is misspelt is an error: only apply
// makes new sources.
func (q *query) arguments(ctx context.Context, cmd *cobra.Command, s *session.Session) (url.Values, error) {
	store := session.IntoStore(cmd)
	given := 0
	for _, is := range []bool{q.as != "", cmd.Flags().Changed("source"), store} {
		if is {
			given++
		}
	}
	out := url.Values{"as": {q.as}}
	switch {
	case given > 1:
		return nil, session.Usagef("--as, --source and --store exclude each other")
	case q.as != "":
		if err := q.exists(ctx, s); err != nil {
			return nil, err
		}
	case s.Store == "filedb" && store:
		return nil, session.Usagef("--store filedb takes no changes: expected --as filedb:PATH, which is the plan of saving that file")
	case store:
		out.Set("as", cmp.Or(s.Store, "etcd"))
	default:
		out = url.Values{"as": {q.source}, "new": {"1"}} // it may have declared nothing yet
	}
	if !q.replace && !strings.Contains(out.Get("as"), ":") {
		out.Set("add", "1")
	}
	return out, nil
}

// exists returns an error unless the agent has the source of --as.
func (q *query) exists(ctx context.Context, s *session.Session) error {
	name, _, isFile := strings.Cut(q.as, ":")
	if isFile || name == session.Layer {
		return nil // the agent judges files, and this source is new with the first value
	}
	var all []wire.Source
	if err := s.Get(ctx, "/sources", nil, &all); err != nil {
		return err
	}
	var known []string
	for _, one := range all {
		known = append(known, one.Name)
	}
	if slices.Contains(known, name) {
		return nil
	}
	return session.Usagef("--as: no source is called %q: expected one of %s", name, show.Line(strings.Join(append(known, session.Layer), ", ")))
}

// request asks the agent for a plan. An agent without sources has only declared values.
func (q *query) request(ctx context.Context, s *session.Session, arguments url.Values, text []byte) (p wire.Plan, err error) {
	err = s.Request(ctx, http.MethodPost, "/scheduler/plan", arguments, text, &p)
	refused, ok := errors.AsType[session.StatusError](err)
	if !ok || refused.Status != http.StatusNotFound || q.as != "" {
		return p, err
	}
	for name := range arguments {
		arguments.Del(name)
	}
	if q.replace {
		arguments.Set("replace", "1")
	}
	return p, s.Request(ctx, http.MethodPost, "/scheduler/plan", arguments, text, &p)
}

// print prints the plan of documents. The plan of the valid values is printed before the error about the others.
func (q *query) print(ctx context.Context, cmd *cobra.Command, s *session.Session, all documents.Documents, f *show.Format) error {
	text := all.Text()
	if q.replace {
		text = all.Whole()
	}
	if f.File() != "" && (q.as != "" || q.replace) {
		return session.Usagef("-o FILE%s excludes --as and --replace", saved.Ending)
	}
	arguments, err := q.arguments(ctx, cmd, s)
	if err != nil {
		return err
	}
	source := arguments.Get("as")
	p, err := q.request(ctx, s, arguments, text)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Flags().Args(), ", "), err)
	}
	if !slices.Contains([]string{"log", "json", "yaml"}, f.Word()) { // these have them
		for _, w := range all.Warnings(p.Warnings) {
			fmt.Fprintln(s.Err, show.Broken(s.Err, "agentctl: "+w.String(), 2))
		}
	}
	changes := show.ChangesOf(p.Operations)
	if f.Word() == "log" {
		err = s.CopyText(ctx, http.MethodPost, "/scheduler/plan", arguments, text)
	} else {
		err = written(s, f, p, changes)
	}
	wrong := errors.Join(unknown(p.Unknown), all.Invalid("not part of the plan", p.Invalid))
	if f.File() != "" && err == nil {
		err = save(f.File(), wrong, saved.Plan{Label: s.AgentLabel(), Source: source, Store: session.IntoStore(cmd), Document: string(text), Operations: p.Operations})
	}
	if err == nil && len(changes) > 0 {
		err = session.ErrChanges
	}
	return errors.Join(err, wrong)
}

// written prints a plan in each format but log, which the agent writes.
func written(s *session.Session, f *show.Format, p wire.Plan, changes []show.Change) error {
	if f.Word() == "table" {
		return planTable(s.Out, p)
	}
	return f.Write(s.Out, p, func(out io.Writer) error {
		return show.Changes(out, s.Env, "Plan", changes, len(p.Invalid))
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

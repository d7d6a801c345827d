package declare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/saved"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// fileHelp describes FILE.
const fileHelp = "FILE (- for standard input) is YAML or JSON in the form of filedb: groups such as linuxConfig, or a list of {key, value}, where a null\n" +
	"value means removal. Of a folder, all files that end with .yaml, .yml or .json are read."

// A change is what apply does: the text of files, and how it is declared.
type change struct {
	*session.Session
	source  string // the data source, or the name of the store
	replace bool   // the source has no other values afterwards
	empty   bool   // files without values are meant
	atomic  bool
	wait    bool
	trial   time.Duration // the agent takes the change back after this time; 0: it does not
	removed int           // the number of values that are withdrawn; 0: the text declares values
	rest    []byte        // of text, without what other sources keep, for who waits; nil: all of it
	saved   *saved.Plan   // that is applied; nil: the changes are planned now
	text    []byte
	from    documents.Documents
	models  *models.Registry // set by values: those that have all values
}

// apply returns the command that declares the values of files.
func apply(s *session.Session) *cobra.Command {
	c := change{Session: s}
	var planned string
	cmd := &cobra.Command{
		Use:   "apply FILE...",
		Short: "Declares the values of files, after printing what that changes",
		Long: "Apply prints the changes that the values of the FILEs cause, as plan does, and then declares them in the agent as one transaction.\n" +
			"They join the values that agentctl has declared before; --replace withdraws these. The values of stores are merged by priority:\n" +
			"those of agentctl have the priority of gRPC clients.\n" + fileHelp + "\n\n" +
			"If a value is invalid, nothing is changed. If an operation fails, the others take effect, or with --atomic none. With --store, the\n" +
			"values are written into that store at once, as one transaction of the store. With --plan, nothing is changed unless the agent would\n" +
			"do what agentctl plan -o has saved, with the same values before and after; secrets are not compared.\n\n" +
			"Exit codes: 0 done, 1 a value is invalid or failed; with --wait also: a value is not configured before --timeout ends. Such values\n" +
			"are printed with their reasons.",
		Example:           "  agentctl apply network.yaml --wait --timeout 30s\n  agentctl apply network/ --replace --atomic\n  agentctl apply routes.yaml --store etcd\n  agentctl apply --plan new.plan",
		ValidArgsFunction: names.CompleteFile,
		Args:              filesOrPlan,
	}
	cmd.Flags().StringVar(&planned, "plan", "", "make the changes of this file of agentctl plan -o, in place of FILEs, if the agent would still plan the same")
	_ = cmd.RegisterFlagCompletionFunc("plan", names.CompleteFile) // fails only without the flag
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait until all values are configured")
	cmd.Flags().BoolVar(&c.atomic, "atomic", false, "declare nothing if an operation fails: what was done is undone")
	cmd.Flags().BoolVar(&c.replace, "replace", false, "withdraw all other values of the data source")
	c.allowEmpty(cmd)
	cmd.Flags().StringVar(&c.source, "source", session.Layer, "declare the values with this data source")
	declared := s.WithAgentUntil(answerTime, c.declareFiles)
	stored := s.WithStore(c.storeFiles)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store := session.IntoStore(cmd)
		if planned != "" {
			if err := without(cmd, "--plan", "replace", "allow-empty", "source", "store", "etcd-endpoints"); err != nil {
				return err
			}
			if err := c.take(planned); err != nil {
				return err
			}
			store = c.saved.Store
		}
		if !store {
			return declared(cmd, args)
		}
		if err := without(cmd, "--store", "atomic", "replace", "allow-empty", "source"); err != nil {
			return err
		}
		return stored(cmd, args)
	}
	return cmd
}

// without refuses flags that are not possible with another one.
func without(cmd *cobra.Command, with string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return session.Usagef("--%s is not possible with %s", name, with)
		}
	}
	return nil
}

// fileArgs checks that there is a file.
func fileArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("FILE is missing: expected a file of values, a folder, or - for standard input")
	}
	return nil
}

// filesOrPlan is fileArgs for a command that has --plan in place of files.
func filesOrPlan(cmd *cobra.Command, args []string) error {
	if !cmd.Flags().Changed("plan") {
		return fileArgs(cmd, args)
	}
	return session.ExpectArgs()(cmd, args)
}

// declareFiles declares the values of files in a layer.
func (c *change) declareFiles(ctx context.Context, args []string) error {
	deadline := time.Now().Add(c.Timeout)
	if err := c.read(args); err != nil {
		return err
	}
	if err := c.refuseEmpty(ctx); err != nil {
		return err
	}
	return c.declareText(ctx, deadline)
}

// declareText prints the changes that the text causes in a layer, and makes them.
func (c *change) declareText(ctx context.Context, deadline time.Time) error {
	p, err := c.plan(ctx)
	if err != nil {
		return err
	}
	if err := c.show(p); err != nil {
		return err
	}
	if err := errors.Join(c.unmoved(p), c.leaveOut(p)); err != nil {
		return err
	}
	query := url.Values{"datasrc": {c.source}}
	if c.replace {
		query.Set("replace", "1")
	}
	if c.atomic {
		query.Set("revert", "1")
	}
	if c.trial > 0 {
		query.Set("trial", c.trial.String())
	}
	err = c.Request(ctx, http.MethodPut, "/configuration", query, c.text, &wire.Nothing{})
	if err != nil {
		return c.refused(err)
	}
	return c.outcome(ctx, deadline)
}

// read reads the files.
func (c *change) read(args []string) (err error) {
	if c.saved != nil {
		return nil
	}
	c.from, err = documents.Read(c.In, args)
	c.text = c.from.Text()
	if c.replace {
		c.text = c.from.Whole()
	}
	return err
}

// allowEmpty adds the flag --allow-empty.
func (c *change) allowEmpty(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.empty, "allow-empty", false, "with --replace: withdraw all values if the files have none; without this flag they are a mistake")
}

// refuseEmpty refuses files without values that would withdraw all others: a command before a pipe
// may have failed, or a file was cut off.
func (c *change) refuseEmpty(ctx context.Context) error {
	if !c.replace {
		return nil
	}
	any, err := c.from.Declare(models.BuiltIn())
	if errors.Is(err, documents.ErrIgnored) { // the agent may have other models
		var all *models.Registry
		if all, err = c.Registry(ctx); err != nil {
			return err
		}
		any, _ = c.from.Declare(all)
	}
	switch {
	case any:
		return nil
	case c.empty:
		c.text = []byte("[]") // which says so, unlike parts for other programs
		return nil
	}
	return documents.ErrEmpty
}

// plan asks the agent for the changes.
func (c *change) plan(ctx context.Context) (p wire.Plan, err error) {
	query := url.Values{"as": {c.source}, "new": {"1"}}
	if !c.replace {
		query.Set("add", "1")
	}
	err = c.Request(ctx, http.MethodPost, "/scheduler/plan", query, c.text, &p)
	return p, err
}

// show prints the changes. The error lists invalid values.
func (c *change) show(p wire.Plan) error {
	if err := c.from.Invalid("nothing was changed, because values are invalid", p.Invalid); err != nil {
		return err
	}
	for _, w := range c.from.Warnings(p.Warnings) {
		fmt.Fprintln(c.Err, show.Broken(c.Err, "agentctl: "+w.String(), 2))
	}
	return show.Changes(c.Out, c.Env, "Plan", show.ChangesOf(p.Operations), 0)
}

// refused returns the error of a request that has failed, with each failed value.
func (c *change) refused(err error) error {
	failed, ok := errors.AsType[session.StatusError](err)
	if !ok || len(failed.Failed) == 0 {
		return err
	}
	effect := "declared, but these failed"
	if c.atomic || failed.Status != http.StatusInternalServerError {
		effect = "nothing was changed, because these failed"
	}
	return c.from.Invalid(effect, failed.Failed)
}

// outcome prints which values are applied. With wait, it waits for all of them.
func (c *change) outcome(ctx context.Context, deadline time.Time) error {
	until := deadline
	if !c.wait {
		until = time.Now() // the agent answers with the present states
	}
	if c.removed > 0 {
		fmt.Fprintf(c.Out, "Withdrawn from %s: %s.\n", show.Line(c.source), show.Count(c.removed, "value"))
		if c.wait {
			return c.await(ctx, deadline)
		}
		return nil
	}
	out, err := wait(ctx, c.Session, wire.Wait{Document: string(c.text)}, until)
	if err != nil {
		return fmt.Errorf("declared, but its effect is unknown: %w", err)
	}
	fmt.Fprintf(c.Out, "Declared in %s: %s.\n", show.Line(c.source), show.Count(out.Count, "value"))
	if out.Done && !c.wait {
		return nil
	}
	if err := printWaited(c.Out, "configured", out); err != nil || out.Done {
		return err
	}
	if c.wait || out.Hopeless {
		return waitError(c.Session, "configured", out)
	}
	_, err = fmt.Fprintf(c.Out, "%d of %s not configured yet.\n", out.MissingCount, show.Count(out.Count, "value"))
	return err
}

// await waits until the system has what the text says, and prints the values that are not so.
func (c *change) await(ctx context.Context, deadline time.Time) error {
	state := "configured"
	if c.removed > 0 {
		state = "removed"
	}
	text := c.text
	if c.rest != nil {
		text = c.rest
	}
	out, err := wait(ctx, c.Session, wire.Wait{Document: string(text)}, deadline)
	if err != nil {
		return fmt.Errorf("done, but its effect is unknown: %w", err)
	}
	return errors.Join(printWaited(c.Out, state, out), waitError(c.Session, state, out))
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
)

// longest stands for no timeout of the command: each batch has one of its own.
const longest = 1000 * time.Hour

// apply returns the command that changes many labels, batch by batch.
func apply(s *session.Session, store *session.DirectStore) *cobra.Command {
	o := rollout{s: s}
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Writes a template for many agents into the store, batch by batch",
		Long: "Apply writes the values of FILE (- for standard input) for each label into the store: one transaction of the store for each label,\n" +
			"and one batch of labels after the other. A pattern stands for the agents with a summary (publish-summary) that run; those that are\n" +
			"ENDED or LOST are skipped. A label without wildcards needs no summary;\n" +
			"a warning names each label and pattern that fits no agent that runs.\n" + templateHelp + "\n\n" +
			"With --wait, a batch ends when the published status (publish-status) of each of its keys is CONFIGURED, or gone if the key is removed.\n" +
			"An agent has failed if one of them is INVALID, FAILED or UNIMPLEMENTED, or is not so within --batch-timeout. After --max-failures of them, no further\n" +
			"batch begins; with --undo, all labels that this run has changed then get their earlier values, unless somebody else has changed them.\n\n" +
			"To continue after an interruption, run the same command again: labels whose keys have the values already are not written.\n" +
			"The user needs the right to write the keys of the labels below config/, and with --wait those below config-status/.\n\n" +
			"Exit codes: 0 all labels are done, 1 one is not.",
		Example:           "  agentctl fleet apply lan.yaml --labels 'edge-*' --batch 5 --max-failures 2 --wait --undo\n  agentctl fleet apply lan.yaml --labels edge-1,edge-2 --dry-run",
		ValidArgsFunction: names.CompleteFile,
		Args:              session.ExpectArgs("FILE"),
	}
	cmd.Flags().StringSliceVar(&o.patterns, "labels", nil, labelsHelp)
	cmd.Flags().IntVar(&o.batch, "batch", 1, "number of labels that are changed at a time")
	cmd.Flags().IntVar(&o.maxFailures, "max-failures", 1, "number of failed agents after which no further batch begins")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait for each batch until its values are configured")
	cmd.Flags().DurationVar(&o.patience, "batch-timeout", time.Minute, "the longest time to wait for a batch")
	cmd.Flags().BoolVar(&o.undo, "undo", false, "if it stops because of failures, write the earlier values again")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be changed, and change nothing")
	run := store.With(func(ctx context.Context, store kvdbsync.Store, args []string) error {
		jobs, err := o.plan(ctx, store, args[0])
		if err != nil || dry {
			return err
		}
		return o.run(ctx, jobs)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if !cmd.Flags().Changed("timeout") {
			s.Timeout = longest
		}
		return run(cmd, args)
	}
	return cmd
}

// check refuses flags that cannot be meant.
func (o *rollout) check() error {
	switch {
	case len(o.patterns) == 0:
		return session.Usagef("--labels is missing; expected labels, or a pattern such as 'edge-*'")
	case o.batch < 1:
		return session.Usagef("--batch is %d; expected at least 1", o.batch)
	case o.maxFailures < 1:
		return session.Usagef("--max-failures is %d; expected at least 1", o.maxFailures)
	case o.patience <= 0:
		return session.Usagef("--batch-timeout is %v; expected a duration such as 1m", o.patience)
	}
	return checkPatterns(o.patterns)
}

// plan renders the template for all labels, so that a mistake is found before the first
// change, and prints what each label would get.
func (o *rollout) plan(ctx context.Context, store kvdbsync.Store, file string) ([]*job, error) {
	into, able := store.(atOnce)
	if !able {
		return nil, errors.New("the store makes no changes at once")
	}
	o.store = into
	text, err := documents.ReadFile(o.s.In, file)
	if err != nil {
		return nil, err
	}
	labels, err := o.labels(ctx)
	if err != nil {
		return nil, err
	}
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return nil, err
		}
	}
	var jobs []*job
	err = o.s.UseModels(ctx, func(known *models.Registry) (err error) {
		jobs, err = jobsOf(known, file, string(text), labels)
		return err
	})
	if errors.Is(err, documents.ErrIgnored) {
		fmt.Fprintln(o.s.Err, show.Broken(o.s.Err, "agentctl: warning: "+err.Error(), 2))
		err = nil
	}
	if err != nil {
		return nil, session.Lines(err)
	}
	for _, j := range jobs {
		if err := j.read(ctx, store); err != nil {
			return nil, err
		}
		o.say(j.label, j.summary())
	}
	return jobs, nil
}

// jobsOf renders the template for each label.
func jobsOf(known *models.Registry, file, text string, labels []string) (jobs []*job, ignored error) {
	for _, label := range labels {
		changes, err := changesFor(known, file, text, label)
		if errors.Is(err, documents.ErrIgnored) {
			ignored = err // the same for each label
			err = nil
		}
		if err != nil {
			return nil, err
		}
		if len(changes) == 0 {
			return nil, fmt.Errorf("%s: no values: expected keys and values, in YAML or JSON", file)
		}
		jobs = append(jobs, &job{label: label, changes: changes})
	}
	return jobs, ignored
}

// labels returns the labels that the patterns select, sorted.
func (o *rollout) labels(ctx context.Context) (out []string, err error) {
	patterns := slices.Clone(o.patterns)
	for _, p := range o.patterns {
		if !isPattern(p) {
			out = append(out, p)
		}
	}
	patterns = slices.DeleteFunc(patterns, func(p string) bool { return !isPattern(p) })
	r := reader{s: o.s, store: o.store, now: time.Now()}
	all, err := r.agents(ctx, false)
	if err != nil && len(patterns) > 0 { // for labels, the user needs no right to read summaries
		return nil, err
	}
	for _, a := range all {
		switch {
		case !matches(patterns, a.Label) || slices.Contains(out, a.Label):
		case !a.runs():
			o.skipped++
			o.say(a.Label, "skipped: its agent is "+a.State)
		default:
			out = append(out, a.Label)
		}
	}
	if len(out) == 0 {
		return nil, session.NotFound("no agent that runs fits " + strings.Join(o.patterns, ", "))
	}
	if err == nil {
		warnUnused(o.s, o.patterns, all)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Package migrate has the command migrate of agentctl: it reads an older installation, and says what works as
// it is, what changes, what is ignored, and what the first transaction would do.
//
// The facts about the older agent are in facts.go, one table for each configuration file. Nothing is
// changed, neither in the folder nor in etcd.
package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/files"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// older is the only release that migrate knows.
const older = "vpp-agent-3.5"

// A Report is what the command found.
type Report struct {
	Findings []Finding      `json:"findings"`
	Values   map[string]int `json:"values,omitempty"` // valid values, by model
	// Settings says that files, flags or variables were read, besides values.
	Settings bool `json:"settings,omitempty"`
	// Plan has the changes of the first transaction. It is nil if no agent could plan it; Unplanned says why.
	Plan      []show.Change `json:"plan,omitempty"`
	Unplanned string        `json:"unplanned,omitempty"`
}

// Command returns the command migrate.
func Command(s *session.Session) *cobra.Command {
	var from, line, env string
	var all bool
	cmd := &cobra.Command{
		Use:   "migrate FOLDER|UNIT|MANIFEST|etcd...",
		Short: "Says what becomes of an installation of vpp-agent 3.5",
		Long: "Migrate reads the configuration files of an installation in FOLDER, with the flags in its supervisor.conf and the values of\n" +
			"its start-up file (initial-config.yaml), and the values of the label in etcd. A UNIT of systemd (NAME.service), and a MANIFEST of Compose or Kubernetes (NAME.yaml), have the flags and variables with which\n" +
			"the older agent was started. It prints what changes, what is ignored, what is refused, and what stops the agent. Nothing is changed.\n\n" +
			"If an agent with the label answers, migrate also prints the changes that it would make if etcd were its store. An agent without stores\n" +
			"changes nothing by itself, and may run beside vpp-agent for that.\n\n" +
			"Exit codes: 0 nothing stops the agent or is refused, 1 something does or is, or an error.",
		Example: "  agentctl migrate --from vpp-agent-3.5 /opt/vpp-agent/dev\n" +
			"  agentctl migrate --from vpp-agent-3.5 docker-compose.yml /opt/vpp-agent/dev\n" +
			"  agentctl migrate --from vpp-agent-3.5 --service-label vpp1 etcd\n" +
			"  agentctl migrate --from vpp-agent-3.5 --flags '-config-dir=/etc/vpp-agent -kafka-config=kafka.conf' --env /etc/default/vpp-agent /etc/vpp-agent",
		Args: session.ExpectSome("FOLDER, a file NAME.service or NAME.yaml, or etcd,"),
		PreRunE: func(*cobra.Command, []string) error {
			if from != older {
				return session.Usagef("from: %q: expected %s", from, older)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", older, "the older release: "+older)
	cmd.Flags().StringVar(&line, "flags", "", "the command line of the older agent, besides that in supervisor.conf")
	cmd.Flags().StringVar(&env, "env", "", "a file with the environment of the older agent: lines NAME=VALUE, as those of systemd and Docker")
	cmd.Flags().BoolVar(&all, "all", false, "also print what works as before")
	f := show.FormatFlag(cmd, s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := read(cmd, s, args, line, env)
		if err != nil {
			return err
		}
		if err := f.Write(s.Out, r, func(out io.Writer) error { return r.print(out, s, all) }); err != nil {
			return err
		}
		if worst(r.Findings) {
			return errors.New("something stops the agent, or is refused")
		}
		return nil
	}
	return cmd
}

// read returns what the arguments, the flags and the variables of the older agent say. How it was started comes first, because
// its flags name configuration files.
func read(cmd *cobra.Command, s *session.Session, args []string, line, env string) (r Report, err error) {
	started := start{given: map[string]string{}}
	started.commandLine("flags", strings.Fields(line))
	if env != "" {
		if err := started.environmentFile(env, files.Read); err != nil {
			return r, err
		}
	}
	for _, arg := range args {
		if isStart(arg) {
			if err := started.file(arg); err != nil {
				return r, err
			}
		}
	}
	r.Findings, r.Settings = started.findings, len(started.findings) > 0
	for _, arg := range args {
		switch {
		case isStart(arg):
		case arg == "etcd":
			s.Store = arg // the word says which store is meant, whatever store the settings name for other commands
			err = s.WithStore(func(ctx context.Context, store kvdbsync.Store, _ []string) error { return r.addKeys(ctx, s, store) })(cmd, nil)
		default:
			var found []Finding
			found, err = started.inFolder(arg)
			r.Findings = append(r.Findings, found...)
			r.Settings = true
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// addKeys checks the values of the label in a store, and has an agent plan them.
func (r *Report) addKeys(ctx context.Context, s *session.Session, store kvdbsync.Store) error {
	pairs, err := store.List(ctx, session.AllAgents+s.Label+"/config/")
	if err != nil {
		return err
	}
	if len(pairs) == 0 {
		return noKeys(ctx, s, store)
	}
	r.Values = map[string]int{}
	var valid []map[string]any
	for _, p := range pairs {
		key := session.ShortKey(p.Key)
		model := "no model"
		if m, _, ok := models.BuiltIn().ByKey(key); ok {
			model = m.Name()
		}
		if err := refusal(models.BuiltIn(), key, p.Value); err != nil {
			r.Findings = append(r.Findings, finding(p.Key, model, fact{refused, err.Error()}))
			continue
		}
		r.Values[model]++
		valid = append(valid, map[string]any{"key": key, "value": json.RawMessage(p.Value)})
	}
	return r.plan(ctx, s, valid)
}

// noKeys returns the error about a label without keys, with the labels that have some. An empty plan for no values would
// say nothing about the installation.
func noKeys(ctx context.Context, s *session.Session, store kvdbsync.Store) error {
	const most = 10
	pairs, err := store.List(ctx, session.AllAgents)
	if err != nil {
		return err
	}
	labels := map[string]bool{}
	for _, p := range pairs {
		label, below, _ := strings.Cut(strings.TrimPrefix(p.Key, session.AllAgents), "/")
		if strings.HasPrefix(below, "config/") {
			labels[label] = true
		}
	}
	all := slices.Sorted(maps.Keys(labels))
	others := "no label has any"
	if len(all) > 0 {
		others = "--service-label gives one of the labels that have some: " + strings.Join(all[:min(len(all), most)], ", ")
	}
	if len(all) > most {
		others += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return fmt.Errorf("etcd has no keys below %s%s/config/; %s", session.AllAgents, s.Label, show.Line(others))
}

// plan asks the agent for the changes that values would cause as the content of etcd.
func (r *Report) plan(ctx context.Context, s *session.Session, values []map[string]any) error {
	body, err := json.Marshal(values)
	if err != nil {
		return err
	}
	end, err := s.ReachStoreAgent(ctx)
	if err == nil {
		defer end()
		var p wire.Plan
		err = s.Request(ctx, http.MethodPost, "/scheduler/plan", url.Values{"replace": {"1"}}, body, &p)
		r.Plan = append([]show.Change{}, show.ChangesOf(p.Operations)...)
		for _, i := range p.Invalid {
			r.Findings = append(r.Findings, finding(i.Key, "", fact{refused, cmp.Or(i.Error, "the agent refuses it")}))
		}
	}
	if err != nil {
		r.Plan, r.Unplanned = nil, show.Line(err.Error())
	}
	return nil
}

// print writes the report for people.
func (r *Report) print(out io.Writer, s *session.Session, all bool) error {
	count := map[string]int{}
	for _, f := range r.Findings {
		count[f.Verdict]++
		if all || f.Verdict != string(same) {
			if err := show.Hanging(out, f.Verdict, len("changed  "), f.text()); err != nil {
				return err
			}
		}
	}
	sum := fmt.Sprintf("Flags, settings and values: %d as before, %d changed, %d ignored, %d refused, %d that would stop the agent.\n",
		count[string(same)]+total(r.Values), count[string(changed)], count[string(ignored)], count[string(refused)], count[string(stops)])
	fmt.Fprint(out, show.Broken(out, sum, 2))
	if r.Settings && count[string(stops)]+count[string(refused)] == 0 {
		fmt.Fprint(out, show.Broken(out, "The agent starts unchanged: no file and no flag needs an edit.\n", 2))
	}
	if slices.ContainsFunc(r.Findings, Finding.restorable) {
		fmt.Fprint(out, show.Broken(out, "All older addresses and rights: start it with -compat="+older+", or write compat: "+older+" into agent.conf.\n", 2))
	}
	for _, model := range slices.Sorted(maps.Keys(r.Values)) {
		fmt.Fprintf(out, "  %-30s values: %d\n", show.Line(model), r.Values[model])
	}
	switch {
	case r.Unplanned != "":
		fmt.Fprintln(out, "The first plan is unknown, because no agent with this label made one:", r.Unplanned)
	case r.Values != nil && len(r.Plan) == 0:
		fmt.Fprintln(out, "The first plan is empty: the network is as these values declare it.")
	case r.Values != nil:
		fmt.Fprintln(out, "The first transaction would change this:")
		return show.Changes(out, s.Env, "Plan", r.Plan, 0)
	}
	return nil
}

// total returns the number of valid values.
func total(byModel map[string]int) (n int) {
	for _, count := range byModel {
		n += count
	}
	return n
}

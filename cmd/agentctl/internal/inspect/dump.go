package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A dumpRow is one value of a dump with the name of its model.
type dumpRow struct {
	// The name of the model, such as vpp.interfaces.
	Model string
	wire.DumpEntry
}

// A dumped is a dumpRow as -f prints it. Templates see its fields, and those of the message: {{.Value.Name}}. The names of
// the fields are an interface of scripts.
type dumped struct {
	Model, Key string
	Value      proto.Message // nil: none
	Origin     origin
	Metadata   any // of encoding/json
}

// An origin is the origin of a value, as package wire numbers it. JSON has the number; templates and tables have the
// word of vpp-agent 3.5.
type origin int

// String returns the word for o.
func (o origin) String() string {
	if name := originName(int(o)); name != originName(wire.UnknownOrigin) {
		return "from-" + name
	}
	return originName(wire.UnknownOrigin)
}

// Held implements show.Holder.
func (d dumped) Held() any { return d.Value }

// MarshalJSON writes the value as vpp-agent 3.5: names of fields in lowerCamelCase, names of enums.
func (d dumped) MarshalJSON() ([]byte, error) {
	var value json.RawMessage
	if d.Value != nil {
		var err error
		if value, err = models.CamelCaseJSON(d.Value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(struct {
		Model, Key string
		Value      json.RawMessage
		Origin     origin
		Metadata   any
	}{d.Model, d.Key, value, d.Origin, d.Metadata})
}

// formatted returns rows as -f prints them. The types are those of the agent.
func formatted(types show.Types, rows []dumpRow) ([]dumped, error) {
	out := make([]dumped, len(rows))
	for i, row := range rows {
		out[i] = dumped{Model: row.Model, Key: row.Key, Origin: origin(row.Origin)}
		if len(row.Metadata) > 0 {
			if err := json.Unmarshal(row.Metadata, &out[i].Metadata); err != nil {
				return nil, fmt.Errorf("metadata of %s: %w", row.Key, err)
			}
		}
		if row.Value == nil {
			continue
		}
		m, err := show.Message(types, row.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.Key, err)
		}
		out[i].Value = m
	}
	return out, nil
}

// origins returns the words for the origins that package wire numbers, in that order.
func origins() []string { return []string{"unknown", "NB", "SB"} }

// originName returns the word for an origin; a number that this version does not know is
// "unknown".
func originName(n int) string {
	if n < 0 || n >= len(origins()) {
		n = wire.UnknownOrigin
	}
	return origins()[n]
}

// dump returns the command that prints values with their metadata.
func dump(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dump MODEL...",
		Short: "Prints values: recorded, declared or read back now",
		Long: "Dump prints the values of models: by name, by pattern such as linux.*, or all.\n" +
			"Views: cached is the actual state as the agent has recorded it, NB the declared values, SB the state that is read back now.\n\n" +
			"Secrets are \"(secret)\" unless --secrets is given, which the agent's socket and users with the permission secrets accept.",
		Example:           "  agentctl dump all\n  agentctl dump 'linux.*' --view SB\n  agentctl dump vpp.interfaces -f yaml",
		ValidArgsFunction: names.CompleteModel(s, session.ConfigClass),
		Args:              session.Patterns("MODEL is missing: expected names, patterns such as linux.*, or all"),
	}
	view := show.ChoiceFlag(cmd, "view", "cached", "state to print", "cached", "NB", "SB")
	origin := show.ChoiceFlag(cmd, "origin", "", "print only values of this origin", "NB", "SB", "unknown")
	secrets := cmd.Flags().Bool("secrets", false, "print secrets too")
	f := show.FormatFlag(cmd, s, "proto")
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		all, err := dumpAll(ctx, s, args, view.Value, *secrets)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(d dumpRow) bool { return origin.Value != "" && originName(d.Origin) != origin.Value })
		if f.Word() == "" {
			return dumpTable(s.Out, all)
		}
		rows, err := formatted(s, all)
		if err != nil {
			return err
		}
		return f.Write(s.Out, rows, nil)
	})
	return cmd
}

// dumpAll dumps the models that the patterns match. A model that several patterns match is
// dumped once. The agent needs one request per model.
func dumpAll(ctx context.Context, s *session.Session, patterns []string, view string, secrets bool) ([]dumpRow, error) {
	known, err := s.Models(ctx, session.ConfigClass)
	if err != nil {
		return nil, err
	}
	var index wire.DumpIndex
	if err := s.Get(ctx, "/scheduler/dump", nil, &index); err != nil {
		return nil, err
	}
	var models []wire.Model
	chosen := map[string]bool{}
	for _, pattern := range patterns {
		implemented, err := implementedBy(index, known, pattern)
		if err != nil {
			return nil, err
		}
		for _, m := range implemented {
			if !chosen[m.Name] {
				models = append(models, m)
			}
			chosen[m.Name] = true
		}
	}
	// A pipe gets no lines about it: a dump usually takes less than a second.
	progress := show.NewProgress(io.Discard, s.Env, "", 0)
	if show.IsTerminal(s.Err) {
		progress = show.NewProgress(s.Err, s.Env, "reading models", len(models))
	}
	defer progress.End()
	// Never nil, so that json prints [] and not null.
	out := []dumpRow{}
	for _, m := range models {
		if out, err = dumpOne(ctx, s, out, m, view, secrets); err != nil {
			return nil, err
		}
		progress.Step()
	}
	return out, nil
}

// implementedBy returns the models that match pattern and that the agent can dump. It is an
// error if there is none, unless the pattern is "all".
func implementedBy(index wire.DumpIndex, known session.Catalogue, pattern string) ([]wire.Model, error) {
	found, err := known.Like(pattern)
	found = slices.DeleteFunc(found, func(m wire.Model) bool { return !slices.Contains(index.KeyPrefixes, m.KeyPrefix) })
	if err == nil && len(found) == 0 && pattern != "all" {
		err = fmt.Errorf("the agent implements no values of %s", pattern)
	}
	return found, err
}

// dumpOne appends the values of one model to out.
func dumpOne(ctx context.Context, s *session.Session, out []dumpRow, m wire.Model, view string, secrets bool) ([]dumpRow, error) {
	var entries []wire.DumpEntry
	query := url.Values{"key-prefix": {m.KeyPrefix}, "view": {view}, "secrets": {session.Secrets(secrets)}}
	if err := s.Get(ctx, "/scheduler/dump", query, &entries); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	for _, e := range entries {
		out = append(out, dumpRow{m.Name, e})
	}
	return out, nil
}

// dumpTable prints the values in columns. The key comes last, because it is the longest
// cell.
func dumpTable(out io.Writer, all []dumpRow) error {
	t := show.NewTable(out, "MODEL", "ORIGIN", "VALUE", "METADATA", "KEY")
	for _, d := range all {
		value, meta := "", string(d.Metadata)
		if d.Value != nil {
			value = show.Compact(d.Value.ProtoMsgData)
		}
		// Values without metadata.
		if meta == "null" {
			meta = ""
		}
		t.Row(d.Model, origin(d.Origin).String(), value, show.Compact([]byte(meta)), d.Key)
	}
	return t.End()
}

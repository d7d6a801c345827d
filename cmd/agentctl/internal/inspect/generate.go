package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/sample"
)

// generate returns the command that prints a sample of a model.
func generate(s *session.Session) *cobra.Command {
	var oneLine, filled bool
	cmd := &cobra.Command{
		Use:     "generate MODEL",
		Aliases: []string{"gen"},
		Short:   "Prints a sample value of a model",
		Long: "Generate prints a value of MODEL with all fields, each with its default, as vpp-agent 3.5.\n" +
			"With --sample it has as many fields as can be set at once, with values to be edited and declared: as YAML it is a file for\n" +
			"validate, plan and apply, and as JSON a value for put. Agents accept the samples of built-in models. Those of models that only the agent has are made of the types of their fields; the agent may refuse them.",
		Example:           "  agentctl generate linux.l3.route\n  agentctl generate linux.l3.route --sample -f yaml >route.yaml",
		ValidArgsFunction: names.CompleteModel(s, session.ConfigClass),
		Args:              session.ExpectArgs("MODEL"),
	}
	cmd.Flags().BoolVar(&oneLine, "oneline", false, "print JSON on one line")
	cmd.Flags().BoolVar(&filled, "sample", false, "set fields to values that the agent accepts, instead of their defaults")
	f := show.FormatFlag(cmd, s, "proto")
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		if oneLine && f.Word() != "" && f.Word() != "json" {
			return session.Usagef("oneline: the format is %q; expected json, the only one with one line", f.Word())
		}
		known, err := s.Models(ctx, session.ConfigClass)
		if err != nil {
			return err
		}
		m, err := known.Named(args[0])
		if err != nil {
			return err
		}
		kind, err := s.MessageType(m.ProtoName)
		if err != nil {
			return err
		}
		if !filled {
			return printSample(s.Out, f, oneLine, kind.New().Interface(), models.AllFieldsJSON)
		}
		model := session.ModelOf(m, kind)
		one, err := sample.Of(model)
		if err != nil {
			return err
		}
		if f.Word() == "yaml" {
			text, err := asFile(model, one)
			if err != nil {
				return err
			}
			return writeYAML(s.Out, text)
		}
		return printSample(s.Out, f, oneLine, one, models.JSON)
	})
	return cmd
}

// asFile returns a value in the form of a file of values, as JSON with the fields in the order of their declaration.
func asFile(m *models.Model, v proto.Message) ([]byte, error) {
	value, err := models.JSON(v)
	if err != nil {
		return nil, err
	}
	group, field := m.ConfigField()
	switch {
	case field == "":
		return asPair(m, v, value)
	case !m.Singleton():
		value = fmt.Appendf(nil, "[%s]", value)
	}
	return fmt.Appendf(nil, "{%q: {%q: %s}}", group, field, value), nil
}

// asPair is asFile for a model that has no field in files.
func asPair(m *models.Model, v proto.Message, value []byte) ([]byte, error) {
	key, err := m.Key(v)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(key)
	return fmt.Appendf(nil, `[{"key": %s, "value": %s}]`, text, value), err
}

// printSample prints a message, its fields in the order of their declaration. asJSON chooses the fields.
func printSample(out io.Writer, f *show.Format, oneLine bool, one proto.Message, asJSON func(proto.Message) ([]byte, error)) error {
	if f.Word() == "proto" {
		return f.Write(out, one, nil)
	}
	compact, err := asJSON(one)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	switch {
	case oneLine:
		_, err = text.Write(compact)
	case f.Word() == "yaml":
		err = writeYAML(&text, compact)
	case f.Word() == "" || f.Word() == "json":
		err = json.Indent(&text, compact, "", "  ")
	default: // a template
		var fields any
		if err := json.Unmarshal(compact, &fields); err != nil {
			return err
		}
		return f.Write(out, fields, nil)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, strings.TrimSuffix(text.String(), "\n")+"\n")
	return err
}

// writeYAML writes JSON as YAML with the fields in their order.
func writeYAML(out io.Writer, text []byte) error {
	var doc yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return err
	}
	withoutStyle(&doc)
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	return e.Encode(&doc)
}

// withoutStyle removes the braces and quotes of JSON. The encoder adds quotes where a text needs
// them.
func withoutStyle(n *yaml.Node) {
	n.Style = 0
	for _, below := range n.Content {
		withoutStyle(below)
	}
}

// Package validate has the commands of agentctl that check files of values, and write the schema with
// which editors check them. Without an agent, they know the built-in models.
package validate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/jsonschema"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Commands returns the commands validate and schema.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{validate(s), schema(s)}
}

// validate returns the command that checks files.
func validate(s *session.Session) *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Checks files of values",
		Long: "Validate prints all mistakes in the FILEs (- for standard input) with line and column: syntax, unknown and repeated fields, wrong types,\n" +
			"values outside of their limits, repeated keys. Of a folder, all files that end with .yaml, .yml or .json are read. A reference to a value\n" +
			"that no file declares is a warning: an agent may have it from elsewhere.\n\n" +
			"Files without mistakes are also sent to the agent, which checks them without declaring them. The agent is asked for models that\n" +
			"agentctl was not built with, too. If no agent answers, validate says so.",
		Example:           "  agentctl validate network.yaml\n  agentctl validate --offline network/",
		ValidArgsFunction: names.CompleteFile,
		Args:              session.ExpectSome("FILE"),
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the agent")
	f := show.FormatFlag(cmd, s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := documents.ReadAny(s.In, args)
		if err != nil {
			return err
		}
		known, err := modelsOf(cmd, s, offline)
		if err != nil {
			return err
		}
		found := append([]documents.Finding{}, all.Check(known)...) // never nil, so that json prints [] and not null
		if mistakes(found) == 0 && !offline {
			err = s.WithAgent(func(ctx context.Context, _ []string) error {
				found = append(found, ask(ctx, s, all)...)
				return nil
			})(cmd, args)
			if err != nil {
				return err
			}
		}
		if err := f.Write(s.Out, found, func(out io.Writer) error { return lines(out, found) }); err != nil {
			return err
		}
		if n := mistakes(found); n > 0 {
			return errors.New(show.Count(n, "mistake"))
		}
		return nil
	}
	return cmd
}

// mistakes counts the findings that are no warnings.
func mistakes(found []documents.Finding) (n int) {
	for _, one := range found {
		if !one.Warning {
			n++
		}
	}
	return n
}

// modelsOf returns the built-in models and, unless offline is set, those that only the agent has.
// If no agent answers, the user is told.
func modelsOf(cmd *cobra.Command, s *session.Session, offline bool) (known *models.Registry, err error) {
	known = models.BuiltIn()
	if offline {
		return known, nil
	}
	err = s.WithAgent(func(ctx context.Context, _ []string) error {
		all, err := s.Registry(ctx)
		if err == nil {
			known = all
			return nil
		}
		fmt.Fprintln(s.Err, "agentctl: only the built-in models are known:", show.Line(err.Error()))
		return nil
	})(cmd, nil)
	return known, err
}

// lines prints one finding per line.
func lines(out io.Writer, found []documents.Finding) error {
	for _, one := range found {
		if _, err := fmt.Fprintln(out, show.Broken(out, one.String(), 2)); err != nil {
			return err
		}
	}
	return nil
}

// ask has the agent check the documents. An agent that does not answer is no mistake of them.
func ask(ctx context.Context, s *session.Session, all documents.Documents) []documents.Finding {
	var p wire.Plan
	if err := s.Request(ctx, http.MethodPost, "/scheduler/plan", nil, all.Text(), &p); err != nil {
		fmt.Fprintln(s.Err, "agentctl: checked without the agent:", show.Line(err.Error()))
		return nil
	}
	return all.Refused(p.Invalid)
}

// modeline is the first line of a file for yaml-language-server.
const modeline = "# yaml-language-server: $schema="

// schema returns the command that writes a JSON schema.
func schema(s *session.Session) *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "schema [MODEL]",
		Short: "Prints the JSON schema of files of values",
		Long: "Schema prints a JSON schema (draft 2020-12) of the files that filedb reads and apply accepts, or of the values of MODEL. Editors complete and\n" +
			"check such files with it. It has the descriptions, ranges and formats of the fields, and says which are required; validate and the agent\n" +
			"check more. The models are the built-in ones and those of the agent, if one answers.\n\n" +
			"The first line of a YAML file names its schema:\n\n  " + modeline + "keyplane.schema.json",
		Example: "  agentctl schema > keyplane.schema.json\n  agentctl schema linux.l3.route",
		Args:    session.ExpectArgs("[MODEL]"),
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the agent: only built-in models")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		known, err := modelsOf(cmd, s, offline || len(args) > 0 && isBuiltIn(args[0]))
		if err != nil {
			return err
		}
		out := jsonschema.Of(known, jsonschema.BothNames)
		if len(args) > 0 {
			m, ok := known.ByName(args[0])
			if !ok {
				return session.Usagef("model %q: not known; expected one that agentctl model list prints", args[0])
			}
			out = jsonschema.OfModel(m, jsonschema.BothNames)
		}
		text, err := show.JSON(out)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.Out, text)
		return err
	}
	return cmd
}

// isBuiltIn reports whether agentctl was built with a model.
func isBuiltIn(name string) bool {
	_, ok := models.BuiltIn().ByName(name)
	return ok
}

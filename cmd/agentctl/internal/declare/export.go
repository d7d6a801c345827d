package declare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// exportValues returns the command that prints declared values as YAML.
func exportValues(s *session.Session) *cobra.Command {
	var source string
	var secrets bool
	cmd := &cobra.Command{
		Use:   "export [VALUE|MODEL...]",
		Short: "Prints declared values as YAML that can be applied again",
		Long: "Export prints the declared values that take effect, or with --source those that one source declares. A file of filedb, agentctl apply\n" +
			"and PUT /configuration read the output unchanged. VALUE is a key, a name, or a unique part of either; MODEL is a name,\n" +
			"a pattern such as 'linux.*', or all.\n\n" +
			"Secrets are \"(secret)\" unless --secrets is given, which the agent's socket and users with the permission secrets accept. Such a\n" +
			"value cannot be applied. If a declared value cannot be exported, the exit code is 1, and the others are printed.",
		Example:           "  agentctl export > network.yaml\n  agentctl export --secrets --source etcd > backup.yaml\n  agentctl export 'linux.l3.*' --source etcd\n  agentctl export config/linux/interfaces/v2/interface/veth1",
		ValidArgsFunction: names.Each(names.CompleteModelOrValue(s)),
		Args:              patternsOrKeys,
	}
	cmd.Flags().StringVar(&source, "source", "", "print what this SOURCE declares, such as etcd or agentctl, whether or not it takes effect")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "print secrets too")
	_ = cmd.RegisterFlagCompletionFunc("source", names.CompleteSource(s)) // fails only without the flag
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		query, err := selection(ctx, s, args, names.Value)
		if err != nil {
			return err
		}
		query.Set("format", "json")
		if source != "" {
			query.Set("source", source)
		}
		query.Set("secrets", session.Secrets(secrets))
		var out wire.Export
		if err := s.Get(ctx, "/configuration", query, &out); err != nil {
			return err
		}
		if show.IsTerminal(s.Out) { // for files and pipes, YAML stays exact
			out.Text = printable.Text(out.Text)
		}
		if _, err := io.WriteString(s.Out, out.Text); err != nil {
			return err
		}
		if n := len(out.Hidden); n > 0 {
			fmt.Fprintf(s.Err, "agentctl: the secrets of %s are hidden (--secrets prints them); the agent refuses such values: %s\n", show.Count(n, "value"), show.Line(first(out.Hidden)))
		}
		var missing []error
		for _, n := range out.Notes {
			missing = append(missing, fmt.Errorf("%s: %s", show.Line(n.Key), show.Remote(n.Error)))
		}
		return errors.Join(missing...)
	})
	return cmd
}

// first returns the first keys of a list, as a text of bounded length.
func first(keys []string) string {
	const most = 5
	if len(keys) <= most {
		return strings.Join(keys, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(keys[:most], ", "), len(keys)-most)
}

// patternsOrKeys checks that arguments are patterns of models, or have the form of a key or a name.
func patternsOrKeys(cmd *cobra.Command, args []string) error {
	var patterns []string
	for _, arg := range args {
		if !strings.Contains(arg, "/") || strings.Contains(arg, "[") {
			patterns = append(patterns, arg)
		}
	}
	return session.Patterns("")(cmd, patterns)
}

// selection returns the arguments model and key of a request for models and keys; none of them
// selects all values. A key need not have a value. Other arguments that match no model are those
// of values, as find finds them.
func selection(ctx context.Context, s *session.Session, args []string, find names.Finder) (url.Values, error) {
	out := url.Values{}
	var known session.Catalogue
	for _, arg := range args {
		if arg == "all" {
			return url.Values{}, nil
		}
		if session.IsKey(arg) {
			out.Add("key", arg)
			continue
		}
		if known == nil {
			var err error
			if known, err = s.Models(ctx, session.ConfigClass); err != nil {
				return nil, err
			}
		}
		like, key, err := names.ModelsOrValue(ctx, s, known, arg, find)
		if _, absent := err.(session.NotFoundError); absent && looksLikeModel(arg) { //nolint:errorlint // it is never wrapped
			_, err = known.Named(arg)
		}
		if err != nil {
			return nil, err
		}
		for _, m := range like {
			out.Add("model", m.Name)
		}
		if len(like) == 0 {
			out.Add("key", key)
		}
	}
	return out, nil
}

// looksLikeModel tells a misspelt model, or a pattern, from a misspelt name.
func looksLikeModel(arg string) bool {
	return !strings.Contains(arg, "/") && strings.ContainsAny(arg, ".*?[")
}

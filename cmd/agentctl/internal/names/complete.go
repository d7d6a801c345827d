package names

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
)

// maxWords is the number of words that a shell gets: more are no help for a person.
const maxWords = 1000

// CompleteValue returns a completion of the first argument with names and keys of values. A
// name that several models have is completed with the model before it.
func CompleteValue(s *session.Session) cobra.CompletionFunc {
	return first(s, func(ctx context.Context, s *session.Session, given string) ([]string, error) {
		known, err := s.Models(ctx, session.ConfigClass)
		if err != nil {
			return nil, err
		}
		listed, err := list(ctx, s, inKeys(given, known), maxWords)
		return wordsOf(listed, known, given), err
	})
}

// CompleteModelOrValue is CompleteValue for commands that also take a model.
func CompleteModelOrValue(s *session.Session) cobra.CompletionFunc {
	models, values := CompleteModel(s, session.ConfigClass), CompleteValue(s)
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		m, _ := models(cmd, args, given)
		v, directive := values(cmd, args, given)
		return append(m, v...), directive
	}
}

// Each returns a completion that completes each argument as f completes the first one.
func Each(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, given string) ([]string, cobra.ShellCompDirective) {
		return f(cmd, nil, given)
	}
}

// wordsOf returns the names and keys that begin with given, with state and model for people.
func wordsOf(listed []browse.ListedValue, known session.Catalogue, given string) (out []string) {
	models := map[string]int{} // number of values by name
	for _, v := range listed {
		if model, name := known.ModelAndName(v.Key); model != "" {
			models[name]++
		}
	}
	for _, v := range listed {
		model, name := known.ModelAndName(v.Key)
		words := []string{v.Key}
		switch {
		case model != "" && name != "" && models[name] == 1:
			words = []string{name, v.Key}
		case model != "" && name != "":
			words = []string{model + "/" + name, v.Key}
		}
		// The key only helps somebody who has begun with it.
		for i, w := range words {
			if strings.HasPrefix(w, given) && (i == 0 || given != "") && printableWord(w) {
				out = append(out, w+"\t"+strings.TrimSpace(v.State+" "+model))
			}
		}
	}
	return out[:min(len(out), maxWords)]
}

// printableWord reports whether a shell can show a word from outside as it is.
func printableWord(w string) bool { return w == show.Line(w) && !strings.ContainsAny(w, "\t\n") }

// CompleteModel returns a completion of all arguments with the names of the models of a class, and the short names that are
// their fields in files, once the user has begun with one.
func CompleteModel(s *session.Session, class string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		return s.Complete(cmd, func(ctx context.Context, s *session.Session) (out []string, err error) {
			known, err := s.Models(ctx, class)
			for _, m := range known {
				words := []string{m.Name}
				if short := session.ShortNames(m)[0]; given != "" && strings.HasPrefix(short, given) {
					words = append(words, short)
				}
				for _, word := range words {
					if !slices.Contains(args, word) && !slices.Contains(out, word) && printableWord(word) {
						out = append(out, word)
					}
				}
			}
			return out, err
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteLogger returns a completion of the first argument with the names of loggers, and of
// the second one with levels.
func CompleteLogger(s *session.Session, levels ...string) cobra.CompletionFunc {
	loggers := first(s, func(ctx context.Context, s *session.Session, _ string) (out []string, err error) {
		var all []wire.LogLevel
		err = s.Get(ctx, "/log/list", nil, &all)
		for _, l := range all {
			if printableWord(l.Logger) {
				out = append(out, l.Logger+"\t"+show.Line(l.Level))
			}
		}
		return out, err
	})
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return levels, cobra.ShellCompDirectiveNoFileComp
		}
		return loggers(cmd, args, given)
	}
}

// CompleteConnection returns a completion of the first argument with the names of connections.
func CompleteConnection(s *session.Session) cobra.CompletionFunc {
	return first(s, func(ctx context.Context, s *session.Session, _ string) (out []string, err error) {
		var all []wire.Connection
		err = s.Get(ctx, "/scheduler/connections", nil, &all)
		for _, c := range all {
			if printableWord(c.Name) {
				out = append(out, c.Name+"\t"+show.Line(c.State))
			}
		}
		return out, err
	})
}

// CompleteSource returns a completion with the names of sources.
func CompleteSource(s *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Complete(cmd, func(ctx context.Context, s *session.Session) (out []string, err error) {
			var all []wire.Source
			err = s.Get(ctx, "/sources", nil, &all)
			for _, source := range all {
				if printableWord(source.Name) {
					out = append(out, source.Name)
				}
			}
			return out, err
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteKey returns a completion of the first argument with keys of the store.
func CompleteKey(s *session.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words := slices.DeleteFunc(s.CompleteKey(cmd, given), func(w string) bool { return !printableWord(w) })
		return words[:min(len(words), maxWords)], cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFile returns a completion with the names of files.
func CompleteFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// first returns a completion of the first argument with words that ask finds.
func first(s *session.Session, ask func(ctx context.Context, s *session.Session, given string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Complete(cmd, func(ctx context.Context, s *session.Session) ([]string, error) {
			return ask(ctx, s, given)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

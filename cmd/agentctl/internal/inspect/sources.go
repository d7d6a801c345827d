package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// sources returns the command that prints the state of the sources.
func sources(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sources [VALUE...]",
		Short: "Prints the state of the sources of declared values",
		Long: "Sources prints the state of each source, those with the highest priority first, and problems that concern more than one key.\n" +
			"With VALUE, a key, a name, or a unique part of either: which sources hold it, and which one takes effect.",
		Example:           "  agentctl sources\n  agentctl sources veth1 veth2",
		ValidArgsFunction: names.Each(names.CompleteValue(s)),
	}
	cmd.AddCommand(forgetSource(s))
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return declarations(ctx, s, args, f)
		}
		sources := []wire.Source{}
		if err := s.Get(ctx, "/sources", nil, &sources); err != nil {
			return err
		}
		return f.Write(s.Out, sources, func(out io.Writer) error { return sourcesTable(out, sources) })
	})
	return cmd
}

// forgetSource returns the command that removes the values of a source that is not configured any more.
func forgetSource(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget SOURCE",
		Short: "Removes the values of a source that is not configured any more",
		Long: "Forget removes the values of SOURCE, which held keys at the last run of the agent and is not configured now, and prints the operations.\n" +
			"Until then the agent keeps them, because the configuration may be missing by mistake: a misspelt name of a file, another kind of store, DISABLED.\n" +
			"agentctl sources shows such sources as \"" + wire.NotConfigured + "\". A configured source is refused: its values are removed in its store.",
		Example: "  agentctl sources forget etcd",
		Args:    session.ExpectArgs("SOURCE"),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		var record wire.Record
		if err := s.Request(ctx, http.MethodPost, "/sources/"+url.PathEscape(args[0])+"/forget", nil, nil, &record); err != nil {
			return err
		}
		return f.Write(s.Out, record, func(out io.Writer) error { return show.OperationsTable(out, record.Executed) })
	})
	return cmd
}

// declarations prints the sources that hold the keys of values.
func declarations(ctx context.Context, s *session.Session, given []string, f *show.Format) error {
	claims := []wire.Declaration{}
	var without []string // keys that no source has
	for _, text := range given {
		key, err := names.ValueOrKey(ctx, s, text)
		if err != nil {
			return err
		}
		var some []wire.Declaration
		if err := s.Get(ctx, "/sources", url.Values{"key": {key}}, &some); err != nil {
			return err
		}
		if len(some) == 0 {
			without = append(without, key)
		}
		claims = append(claims, some...)
	}
	return f.Write(s.Out, claims, func(out io.Writer) error {
		if len(claims) > 0 {
			if err := declarationsTable(out, claims, len(given) > 1); err != nil {
				return err
			}
		}
		for _, key := range without {
			if _, err := fmt.Fprintf(out, "No source has %s.\n", show.Line(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

// declarationsTable prints one declaration per line, with its key if there are several keys.
func declarationsTable(out io.Writer, claims []wire.Declaration, several bool) error {
	columns := []string{"SOURCE", "PRIORITY", "STATE", "TAKES EFFECT", "ERROR"}
	if several {
		columns = append([]string{"KEY"}, columns...)
	}
	t := show.NewTable(out, columns...)
	for _, c := range claims {
		cells := []string{c.Source, strconv.Itoa(c.Priority), declarationState(c), yesOrEmpty(c.Wins), show.Remote(c.Error)}
		if several {
			cells = append([]string{c.Key}, cells...)
		}
		t.Row(cells...)
	}
	return t.End()
}

// sourcesTable prints one source per line. Counters that are zero are left empty, so that
// the others stand out.
func sourcesTable(out io.Writer, sources []wire.Source) error {
	t := show.NewTable(out, "SOURCE", "PRIO", "STATE", "SINCE", "KEYS", "REFUSED", "SAVED", "DOUBTED", "PROBLEMS", "ERROR")
	t.Whole("STATE", "PRIO", "KEYS")
	for _, s := range sources {
		since := ""
		if !s.Since.IsZero() {
			since = show.Short(time.Since(s.Since)) + " ago"
		}
		t.Row(s.Name, strconv.Itoa(s.Priority), sourceState(s), since, strconv.Itoa(s.Keys),
			nonZero(s.Refused), nonZero(s.Remembered), nonZero(s.Doubted), nonZero(s.Problems), show.Remote(s.Error))
	}
	if err := t.End(); err != nil {
		return err
	}
	for _, s := range sources {
		if s.Refused == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s refused; agentctl values --state invalid says why, or agentctl sources VALUE where another source has the value too",
			show.Line(s.Name), show.Count(s.Refused, "value"))
		if _, err := fmt.Fprintln(out, show.Broken(out, text, 2)); err != nil {
			return err
		}
	}
	return printFaults(out, sources)
}

// sourceState returns the state of a source. While the source lists its keys, it includes
// the progress.
func sourceState(s wire.Source) string {
	// Set only while the listing runs.
	if s.Listed == 0 {
		return s.State
	}
	return fmt.Sprintf("%s, %d keys so far", s.State, s.Listed)
}

// printFaults prints the problems of each source that concern more than one key. The agent
// sends only the first ones; the rest is counted.
func printFaults(out io.Writer, sources []wire.Source) error {
	for _, s := range sources {
		for _, text := range s.Faults {
			if _, err := fmt.Fprintln(out, show.Broken(out, show.Line(s.Name)+": "+show.Line(text), 2)); err != nil {
				return err
			}
		}
		if more := s.Problems - len(s.Faults); more > 0 && len(s.Faults) > 0 {
			if _, err := fmt.Fprintf(out, "%s: and %d more\n", show.Line(s.Name), more); err != nil {
				return err
			}
		}
	}
	return nil
}

// declarationState returns the state of a declaration. "saved" means that it was saved
// before the restart and the source has not confirmed it yet; "doubted" that the last
// listing lacked it.
func declarationState(c wire.Declaration) string {
	words := []string{c.State}
	if c.Remembered {
		words = append(words, "saved")
	}
	if c.Doubted {
		words = append(words, "doubted")
	}
	return strings.Join(words, ", ")
}

// yesOrEmpty returns "yes" or an empty cell.
func yesOrEmpty(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// nonZero returns the number, or an empty cell for zero.
func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// sourcesByKey returns for each key below one of the prefixes the sources that hold it, the highest
// priority first: "filedb!, etcd*". The mark * means that the source takes effect, ! that
// its value is refused.
func sourcesByKey(ctx context.Context, s *session.Session, prefixes []string) (map[string]string, error) {
	out := map[string]string{}
	for _, prefix := range prefixes {
		var claims []wire.Declaration
		if err := s.Get(ctx, "/sources", url.Values{"key-prefix": {cmp.Or(prefix, "config/")}}, &claims); err != nil {
			return nil, err
		}
		for _, c := range claims {
			name := marked([]wire.Declaration{c})
			if out[c.Key] != "" {
				name = out[c.Key] + ", " + name
			}
			out[c.Key] = name
		}
	}
	return out, nil
}

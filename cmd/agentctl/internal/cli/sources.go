package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

func (a *app) sources() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sources [KEY]",
		Short: "Prints where what is declared comes from",
		Long: "Sources prints how each source of what is declared is, those that count more first, and what is\n" +
			"wrong in it with more than one key; for KEY, which of them have it, and which wins.",
		Args: want("[KEY]"),
	}
	f := formatFlag(cmd)
	cmd.RunE = a.looking(func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return a.claims(ctx, args[0], f)
		}
		sources := []wire.Source{}
		if err := a.get(ctx, "/sources", nil, &sources); err != nil {
			return err
		}
		return f.write(a.Out, sources, func(out io.Writer) error { return sourcesTable(out, sources) })
	})
	return cmd
}

func (a *app) claims(ctx context.Context, key string, f *format) error {
	claims := []wire.Claim{}
	if err := a.get(ctx, "/sources", url.Values{"key": {key}}, &claims); err != nil {
		return err
	}
	return f.write(a.Out, claims, func(out io.Writer) error {
		if len(claims) == 0 {
			_, err := fmt.Fprintf(out, "No source has %s.\n", oneLine(key))
			return err
		}
		t := newTable(out, "SOURCE", "PRIORITY", "STATE", "WINS", "ERROR")
		for _, c := range claims {
			t.row(c.Source, strconv.Itoa(c.Priority), claimState(c), yes(c.Wins), remote(c.Error))
		}
		return t.end()
	})
}

func sourcesTable(out io.Writer, sources []wire.Source) error {
	t := newTable(out, "SOURCE", "PRIORITY", "STATE", "SINCE", "KEYS", "REFUSED", "REMEMBERED", "DOUBTED", "PROBLEMS", "ERROR")
	for _, s := range sources {
		since := ""
		if !s.Since.IsZero() {
			since = short(time.Since(s.Since)) + " ago"
		}
		t.row(s.Name, strconv.Itoa(s.Priority), sourceState(s), since, strconv.Itoa(s.Keys),
			count(s.Refused), count(s.Remembered), count(s.Doubted), count(s.Problems), remote(s.Error))
	}
	if err := t.end(); err != nil {
		return err
	}
	return faults(out, sources)
}

// sourceState is the state, with how far a listing has come.
func sourceState(s wire.Source) string {
	if s.Listed == 0 {
		return s.State
	}
	return fmt.Sprintf("%s, %d keys so far", s.State, s.Listed)
}

// faults prints what is wrong in each source with more than a key.
func faults(out io.Writer, sources []wire.Source) error {
	for _, s := range sources {
		for _, text := range s.Faults {
			if _, err := fmt.Fprintf(out, "%s: %s\n", oneLine(s.Name), oneLine(text)); err != nil {
				return err
			}
		}
		if more := s.Problems - len(s.Faults); more > 0 && len(s.Faults) > 0 {
			if _, err := fmt.Fprintf(out, "%s: and %d more\n", oneLine(s.Name), more); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimState is the state with what it is not sure of.
func claimState(c wire.Claim) string {
	words := []string{c.State}
	if c.Remembered {
		words = append(words, "remembered")
	}
	if c.Doubted {
		words = append(words, "doubted")
	}
	return strings.Join(words, ", ")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// count is a number that is seldom anything but zero.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// holders are the sources that have keys below a prefix, by key, the one that wins
// marked: "filedb!, etcd*".
func (a *app) holders(ctx context.Context, prefix string) (map[string]string, error) {
	var claims []wire.Claim
	if err := a.get(ctx, "/sources", url.Values{"key-prefix": {cmp.Or(prefix, "config/")}}, &claims); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, c := range claims {
		name := c.Source
		if c.Error != "" {
			name += "!"
		}
		if c.Wins {
			name += "*"
		}
		if out[c.Key] != "" {
			name = out[c.Key] + ", " + name
		}
		out[c.Key] = name
	}
	return out, nil
}

package inspect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
)

// get returns the command that prints all that is known of a value, or of the values of a model.
func get(s *session.Session) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:        "get VALUE|MODEL...",
		SuggestFor: []string{"describe", "show"},
		Short:      "Prints values as declared and as they are, with state and reason",
		Long: "Get prints a value: as the sources declare it, as it is, its state, the reason of that, and the sources that have it. VALUE is a key,\n" +
			"a name, or a unique part of either. Of several, or of a MODEL, it prints all values in a table; the format wide adds the\n" +
			"content, in lines of any length. With --watch, it then prints what changes, until it is interrupted or --timeout ends it.\n\n" +
			modelHelp + "\n\n" +
			"Sources are listed with the highest priority first: * takes effect, ! is refused. Secrets are \"(secret)\".",
		Example:           "  agentctl get veth1\n  agentctl get veth1 -o yaml\n  agentctl get routes\n  agentctl get linux.l3.route -o wide\n  agentctl get 'linux.*' --watch",
		ValidArgsFunction: names.Each(names.CompleteModelOrValue(s)),
		Args:              session.ExpectSome("VALUE or MODEL"),
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "follow the changes")
	f := show.FormatFlag(cmd, s, wide)
	cmd.RunE = s.WithAgentWhile(&watch, func(ctx context.Context, args []string) error {
		known, err := s.Models(ctx, session.ConfigClass)
		if err != nil {
			return err
		}
		g := &getter{s: s, known: known, format: f}
		if err := g.find(ctx, args); err != nil {
			return err
		}
		if watch {
			return s.Follow(ctx, func(ctx context.Context, _ session.News) error { return g.print(ctx) })
		}
		return g.print(ctx)
	})
	return cmd
}

// wide is the format of a table with the content of values.
const wide = "wide"

// An item is all that is known of a value. The names of the fields are an interface of scripts.
type item struct {
	Key         string
	Model, Name string // empty: the key has no model, such as that of a derived value
	State       string // NONEXISTENT: there is no such value
	// The time from which the value has State.
	Since         time.Time `json:",omitzero"`
	LastOperation string    `json:",omitempty"`
	// Reason explains a state other than CONFIGURED, also of a part: the error, and the last causes.
	Reason  []string           `json:",omitempty"`
	Sources []wire.Declaration `json:",omitempty"` // the highest priority first
	// Declared is the value that takes effect, and Actual the known one; null: none. Secrets
	// are redacted.
	Declared, Actual *wire.Message
}

// A getter prints items, at first all of them, then those that have changed.
type getter struct {
	s      *session.Session
	known  session.Catalogue
	format *show.Format
	// The values with these keys, and those of these models.
	keys   []string
	models session.Catalogue

	last  map[string]item // nil: nothing is printed yet
	table *show.Table
}

// find finds what the arguments of the command line name.
func (g *getter) find(ctx context.Context, args []string) error {
	for _, arg := range args {
		models, key, err := names.ModelsOrValue(ctx, g.s, g.known, arg, names.Value)
		if err != nil {
			return err
		}
		if len(models) == 0 {
			g.keys = append(g.keys, key)
		}
		g.models = append(g.models, models...)
	}
	return nil
}

// single reports that one value was asked for.
func (g *getter) single() bool { return len(g.keys) == 1 && len(g.models) == 0 }

// print reads the items and prints those that differ from the last ones.
func (g *getter) print(ctx context.Context) error {
	now, err := g.read(ctx)
	if err != nil {
		return err
	}
	first := g.last == nil
	changed := []item{} // never nil, so that json prints [] and not null
	current := map[string]item{}
	for _, i := range now {
		if before, had := g.last[i.Key]; !had || !reflect.DeepEqual(before, i) {
			changed = append(changed, i)
		}
		current[i.Key] = i
	}
	for _, key := range goneFrom(g.last, current) {
		gone := g.itemOf(browse.ListedValue{Key: key, State: removed})
		changed = append(changed, gone)
	}
	g.last = current
	if !first && len(changed) == 0 {
		return nil
	}
	return g.write(changed, first)
}

// goneFrom returns the sorted keys of before that now lacks.
func goneFrom(before, now map[string]item) (out []string) {
	for key := range before {
		if _, stays := now[key]; !stays {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// write prints items. A single value is one object, and several are a list.
func (g *getter) write(items []item, first bool) error {
	if g.format.Word() == wide || !g.single() && g.format.Word() == "" {
		return g.rows(items)
	}
	if !first {
		separator := map[string]string{"": "\n", "yaml": "---\n"}[g.format.Word()]
		if _, err := io.WriteString(g.s.Out, separator); err != nil {
			return err
		}
	}
	if !g.single() {
		return g.format.Write(g.s.Out, items, nil)
	}
	for _, i := range items {
		if err := g.format.Write(g.s.Out, i, func(out io.Writer) error { return describe(out, i) }); err != nil {
			return err
		}
	}
	return nil
}

// rows prints one item per line.
func (g *getter) rows(items []item) error {
	content := g.format.Word() == wide
	if g.table == nil {
		columns := []string{"MODEL", "NAME", "STATE", "SOURCES", "REASON"}
		if content {
			columns = append(columns, "SINCE", "LAST OP", "DECLARED", "ACTUAL", "KEY")
		}
		g.table = tableFor(g.s.Out, content, columns...)
		g.table.Whole(append(shortColumns(), "NAME")...)
	}
	for _, i := range items {
		cells := []string{i.Model, i.Name, i.State, marked(i.Sources), strings.Join(i.Reason, "; ")}
		if content {
			cells = append(cells, sinceOf(i), i.LastOperation, compactOf(i.Declared), actualOf(i), i.Key)
		}
		g.table.Row(cells...)
	}
	return g.table.End()
}

// tableFor returns a table. With content its lines are whole, also on a terminal: of a content that
// is cut to the rest of a line, nothing is left.
func tableFor(out io.Writer, content bool, columns ...string) *show.Table {
	if content {
		return show.NewTableOf(0, out, columns...)
	}
	return show.NewTable(out, columns...)
}

// compactOf returns the content of a message on one line; empty for none.
func compactOf(m *wire.Message) string {
	if m == nil {
		return ""
	}
	return show.Compact(m.ProtoMsgData)
}

// asDeclared stands for an actual value that equals the declared one.
const asDeclared = "as declared"

// actualOf returns the actual value on one line.
func actualOf(i item) string {
	if i.Actual != nil && equal(i.Declared, i.Actual) {
		return asDeclared
	}
	return compactOf(i.Actual)
}

// equal compares messages.
func equal(a, b *wire.Message) bool {
	return a != nil && b != nil && bytes.Equal([]byte(show.Compact(a.ProtoMsgData)), []byte(show.Compact(b.ProtoMsgData)))
}

// sinceOf returns the age of the state; empty: it is not known.
func sinceOf(i item) string {
	if i.Since.IsZero() {
		return ""
	}
	return show.Short(time.Since(i.Since))
}

// describe prints one value as text.
func describe(out io.Writer, i item) error {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			b.WriteString(show.Broken(out, fmt.Sprintf("%-9s %s\n", name+":", show.Line(text)), 10))
		}
	}
	line("Name", i.Name)
	line("Model", i.Model)
	line("Key", i.Key)
	state := i.State
	if since := sinceOf(i); since != "" {
		state += " for " + since
	}
	if i.LastOperation != "" {
		state += ", last operation " + i.LastOperation
	}
	line("State", state)
	for _, text := range i.Reason {
		line("Reason", text)
	}
	for _, d := range i.Sources {
		text := fmt.Sprintf("%s, priority %d, %s", marked([]wire.Declaration{d}), d.Priority, declarationState(d))
		if d.Error != "" {
			text += ": " + show.Remote(d.Error)
		}
		line("Source", text)
	}
	content(&b, "Declared", i.Declared)
	if i.Actual != nil && equal(i.Declared, i.Actual) {
		line("Actual", asDeclared)
	} else {
		content(&b, "Actual", i.Actual)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// content adds the fields of a message as YAML, below its name.
func content(b *strings.Builder, name string, m *wire.Message) {
	if m == nil {
		fmt.Fprintf(b, "%-9s none\n", name+":")
		return
	}
	text, err := show.YAML(m.ProtoMsgData)
	if err != nil { // the agent sends valid JSON
		text = show.Compact(m.ProtoMsgData)
	}
	fmt.Fprintf(b, "%s:\n", name)
	for l := range strings.Lines(text) {
		b.WriteString("  " + show.Line(strings.TrimSuffix(l, "\n")) + "\n")
	}
}

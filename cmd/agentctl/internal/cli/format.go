package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// A format is what -f says.
type format string

func formatFlag(cmd *cobra.Command, more string) *format {
	f := new(format)
	cmd.Flags().StringVarP((*string)(f), "format", "f", "", "json, yaml"+more+", or a Go template of what json shows, with the functions\njson, yaml, epoch, ago, dur and prefix")
	return f
}

// write writes v in the format; without one, table does.
func (f format) write(out io.Writer, v any, table func(io.Writer) error) error {
	switch f {
	case "":
		return table(out)
	case "json", "yaml":
		text, err := map[format]func(any) (string, error){"json": toJSON, "yaml": toYAML}[f](v)
		if err == nil {
			_, err = io.WriteString(out, strings.TrimSuffix(text, "\n")+"\n")
		}
		return err
	}
	t, err := template.New("format").Funcs(functions()).Parse(string(f))
	if err != nil {
		return fmt.Errorf("format: want json, yaml or a template: %w", err)
	}
	if err := t.Execute(out, v); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	_, err = io.WriteString(out, "\n")
	return err
}

// functions are those of templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"json":  toJSON,
		"yaml":  toYAML,
		"epoch": func(seconds int64) time.Time { return time.Unix(seconds, 0) },
		"ago":   func(t time.Time) string { return short(time.Since(t)) + " ago" },
		"dur":   short,
		"prefix": func(prefix string, v any) string {
			return prefix + strings.ReplaceAll(fmt.Sprint(v), "\n", "\n"+prefix)
		},
	}
}

func toJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func toYAML(v any) (string, error) {
	data, err := yaml.Marshal(v)
	return string(data), err
}

// short is a duration as people say it: the largest unit, or the two largest
// where the first is small.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return d.Round(time.Microsecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}

// A table has columns of equal width; cells are one line each. It is written at
// its end.
type table struct {
	*tabwriter.Writer
	text *strings.Builder
	out  io.Writer
}

func newTable(out io.Writer, columns ...string) table {
	text := new(strings.Builder)
	t := table{tabwriter.NewWriter(text, 0, 8, 2, ' ', 0), text, out}
	t.row(columns...)
	return t
}

func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	_, _ = io.WriteString(t, strings.Join(cells, "\t")+"\n") // a Builder takes everything
}

func (t table) end() error {
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := io.WriteString(t.out, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

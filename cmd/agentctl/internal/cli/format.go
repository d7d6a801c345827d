package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// A format is what -f says. It is a flag.Value, so what makes no sense is refused
// before anything is done.
type format struct {
	words    []string // that it may be, besides a template
	text     string
	template *template.Template // nil: text is a word, or empty
}

// formatFlag gives cmd the flag -f, with more words than those for all.
func formatFlag(cmd *cobra.Command, more ...string) *format {
	f := &format{words: append([]string{"json", "yaml"}, more...)}
	cmd.Flags().VarP(f, "format", "f", strings.Join(f.words, ", ")+", or a Go template of what json shows, with the functions\njson, yaml, proto, protomulti, epoch, ago, dur and prefix")
	return f
}

func (f *format) String() string { return f.text }
func (f *format) Type() string   { return "FORMAT" }

// Set implements pflag.Value.
func (f *format) Set(text string) (err error) {
	want := "expected " + strings.Join(f.words, ", ") + " or a template such as '{{json .}}'"
	switch {
	case slices.Contains(f.words, text):
	case !strings.Contains(text, "{{"):
		return errors.New(want)
	default:
		if f.template, err = template.New("format").Funcs(functions()).Parse(text); err != nil {
			return fmt.Errorf("%s: %w", want, err)
		}
	}
	f.text = text
	return nil
}

// write writes v in the format; without one, table does.
func (f *format) write(out io.Writer, v any, table func(io.Writer) error) error {
	if f.text == "" {
		return table(out)
	}
	var text string
	var err error
	switch {
	case f.template != nil:
		var b strings.Builder
		err = f.template.Execute(&b, v)
		text = b.String() + "\n"
	case f.text == "json":
		text, err = toJSON(v)
		text += "\n"
	case f.text == "yaml":
		text, err = toYAML(v)
	case f.text == "proto":
		text, err = toProtoMulti(v)
	}
	if err != nil {
		return fmt.Errorf("format: %w", err)
	}
	_, err = io.WriteString(out, text)
	return err
}

// functions are those of templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"json":       toJSON,
		"yaml":       toYAML,
		"proto":      toProto,
		"protomulti": toProtoMulti,
		"epoch":      func(seconds int64) time.Time { return time.Unix(seconds, 0) },
		"ago":        func(t time.Time) string { return short(time.Since(t)) + " ago" },
		"dur":        short,
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

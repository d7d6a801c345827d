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
	"go.yaml.in/yaml/v3"
)

// A format is the value of the flag -f: a word, or a Go template. It implements pflag.Value,
// so that an invalid template is refused before the command runs.
type format struct {
	app   *app     // knows the messages of the agent
	words []string // words that the command accepts besides templates
	// The word or template as the user wrote it; empty: the table for people.
	text     string
	template *template.Template // nil if text is a word or empty
}

// formatFlag adds the flag -f to cmd. Every command accepts json and yaml; more are the
// command's own words.
func (a *app) formatFlag(cmd *cobra.Command, more ...string) *format {
	f := &format{app: a, words: append([]string{"json", "yaml"}, more...)}
	cmd.Flags().VarP(f, "format", "f", strings.Join(f.words, ", ")+", or a Go template over the data that json prints, with the functions\njson, yaml, proto, protomulti, epoch, ago, dur and prefix")
	return f
}

// String implements pflag.Value.
func (f *format) String() string { return f.text }

// Type is the placeholder of the value in the help.
func (f *format) Type() string { return "FORMAT" }

// Set implements pflag.Value.
func (f *format) Set(text string) (err error) {
	expected := "expected " + strings.Join(f.words, ", ") + " or a template such as '{{json .}}'"
	switch {
	case slices.Contains(f.words, text):
	case !strings.Contains(text, "{{"):
		return errors.New(expected)
	default:
		f.template, err = template.New("format").Funcs(f.app.functions()).Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", expected, err)
		}
	}
	f.text = text
	return nil
}

// write prints v in the format, or calls table if the user gave none. Output is built in
// memory first: a template that fails must not leave half an answer on standard output.
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
		text, err = f.app.toProtoMulti(v)
	}
	if err != nil {
		return fmt.Errorf("format: %w", err)
	}
	_, err = io.WriteString(out, text)
	return err
}

// functions returns the functions of templates. Their names are part of the interface:
// scripts use them.
func (a *app) functions() template.FuncMap {
	return template.FuncMap{
		"json":       toJSON,
		"yaml":       toYAML,
		"proto":      a.toProto,
		"protomulti": a.toProtoMulti,
		"epoch":      func(seconds int64) time.Time { return time.Unix(seconds, 0) },
		"ago":        func(t time.Time) string { return short(time.Since(t)) + " ago" },
		"dur":        short,
		"prefix": func(prefix string, v any) string {
			return prefix + strings.ReplaceAll(fmt.Sprint(v), "\n", "\n"+prefix)
		},
	}
}

// toJSON returns v as indented JSON. HTML characters are not escaped: the output goes to
// terminals and scripts.
func toJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// toYAML returns v as YAML with the field names of its JSON.
func toYAML(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var fields any // JSON is YAML
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return "", err
	}
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	err = e.Encode(fields)
	return b.String(), err
}

// short returns a duration for people: the largest unit, or the two largest units if the
// first is small.
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

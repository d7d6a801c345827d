package show

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
)

// A Format is the value of the flag -f: a word, or a Go template. It implements pflag.Value,
// so that an invalid template is refused before the command runs.
type Format struct {
	types Types    // knows the messages of the agent
	words []string // words that the command accepts besides templates
	// The word or template as the user wrote it; empty: the table for people.
	text     string
	template *template.Template // nil if text is a word or empty

	ending string // of files that the flag accepts, too; empty: it accepts none
	file   string // empty: the user named none
}

// FormatFlag adds the flag -f to cmd, and -o as its other name, which users of kubectl expect.
// Every command accepts json and yaml; more are the command's own words. types decodes messages
// for the format proto.
func FormatFlag(cmd *cobra.Command, types Types, more ...string) *Format {
	f := &Format{types: types, words: append([]string{"json", "yaml"}, more...)}
	cmd.Flags().VarP(f, "format", "f", strings.Join(f.words, ", ")+", or a Go template over the data that json prints, with the functions\njson, yaml, proto, protomulti, epoch, ago, dur and prefix")
	cmd.Flags().VarP(f, "output", "o", "")
	cmd.Flags().Lookup("output").Hidden = true
	for _, name := range []string{"format", "output"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(f.words, cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
	}
	return f
}

// OrFile makes the flag also accept the name of a file with this ending, to which the command writes. Another format may
// be given besides.
func (f *Format) OrFile(ending string) { f.ending = ending }

// File returns the name of that file; empty: the user gave none.
func (f *Format) File() string { return f.file }

// As returns a format that is fixed, such as "json", for a command without the flag or for an
// answer that has no table. It cannot be "proto", which needs the types of an agent.
func As(word string) *Format { return &Format{text: word} }

// Word returns the word or template of the flag; empty: the table for people.
func (f *Format) Word() string { return f.text }

// String implements pflag.Value.
func (f *Format) String() string { return f.text }

// Type is the word for the value in the help.
func (f *Format) Type() string { return "FORMAT" }

// Set implements pflag.Value.
func (f *Format) Set(text string) (err error) {
	expected := "expected " + strings.Join(f.words, ", ") + " or a template such as '{{json .}}'"
	if f.ending != "" {
		expected += ", or a FILE" + f.ending
	}
	switch {
	case f.ending != "" && strings.HasSuffix(text, f.ending):
		f.file = text
		return nil
	case slices.Contains(f.words, text):
	case !strings.Contains(text, "{{"):
		return errors.New(expected)
	default:
		f.template, err = template.New("format").Funcs(f.functions()).Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", expected, err)
		}
	}
	f.text = text
	return nil
}

// Write prints v in the format, or calls table if the user gave none. Output is built in
// memory first: a template that fails must not leave half an answer on standard output.
func (f *Format) Write(out io.Writer, v any, table func(io.Writer) error) error {
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
		text, err = JSON(v)
		text += "\n"
	case f.text == "yaml":
		text, err = YAML(v)
	case f.text == "proto":
		text, err = textProto(f.types, v, true)
	}
	if err != nil {
		return fmt.Errorf("format: %w", err)
	}
	_, err = io.WriteString(out, text)
	return err
}

// WriteEach is Write for the answers to the arguments of a command line: a single one is printed as itself, and several as a
// list, so that scripts for one argument are not concerned with the others.
func WriteEach[T any](f *Format, out io.Writer, all []T, table func(io.Writer) error) error {
	if len(all) == 1 {
		return f.Write(out, all[0], table)
	}
	return f.Write(out, all, table)
}

// functions returns the functions of templates. Their names are part of the interface:
// scripts use them.
func (f *Format) functions() template.FuncMap {
	return template.FuncMap{
		"json":       JSON,
		"yaml":       YAML,
		"proto":      func(v any) (string, error) { return textProto(f.types, v, false) },
		"protomulti": func(v any) (string, error) { return textProto(f.types, v, true) },
		"epoch":      func(seconds int64) time.Time { return time.Unix(seconds, 0) },
		"ago":        func(t time.Time) string { return Short(time.Since(t)) + " ago" },
		"dur":        Short,
		"prefix": func(prefix string, v any) string {
			return prefix + strings.ReplaceAll(fmt.Sprint(v), "\n", "\n"+prefix)
		},
	}
}

// JSON returns v as indented JSON; a protobuf message with field names in lowerCamelCase, as vpp-agent 3.5. The output
// goes to terminals and scripts: HTML characters are not escaped, and those that a terminal may obey are, as JSON does
// it, so that programs read the same.
func JSON(v any) (string, error) {
	v, err := plain(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(v)
	return escaped(strings.TrimSuffix(b.String(), "\n")), err
}

// escaped returns JSON with escapes in place of the characters that are not printable. They are in strings only.
func escaped(text string) string {
	hidden := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// plain returns v as encoding/json can write it.
func plain(v any) (any, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return v, nil
	}
	text, err := models.CamelCaseJSON(m)
	return json.RawMessage(text), err
}

// YAML returns v as YAML with the field names of its JSON.
func YAML(v any) (string, error) {
	v, err := plain(v)
	if err != nil {
		return "", err
	}
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

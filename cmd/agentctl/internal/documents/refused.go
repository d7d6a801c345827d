package documents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Refused returns the findings about values that the agent refuses. A mistake that Check finds has the
// text and the place of Check, so that all commands say the same about it. A mistake that only the agent
// finds has its words, at the place of the field. The others of Check are left out: the agent accepts them.
func (ds Documents) Refused(invalid []wire.Invalid) []Finding {
	c := ds.checked(models.BuiltIn())
	var out []Finding
	for _, i := range invalid {
		for _, f := range ds.findings(c, i) {
			if !slices.Contains(out, f) { // such as two mistakes in one line that has no key
				out = append(out, f)
			}
		}
	}
	order := ds.order()
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// findings returns the findings about one refused value.
func (ds Documents) findings(c *checker, i wire.Invalid) (out []Finding) {
	at := Finding{Key: i.Key, Text: withoutKind(i.Error)}
	place, known := c.places[i.Key]
	switch {
	case i.Line > 0:
		at.File, at.Line = ds.at(i.Line)
	case known:
		at.File, at.Line, at.Column = place("").File, place("").Line, place("").Column
	}
	if i.Line == 0 && len(i.Fields) == 0 { // a verb has failed, or it is a number of further mistakes
		return []Finding{at}
	}
	known = known && at.File == place("").File
	told := map[string]bool{}
	for _, f := range c.found {
		if f.isAbout(at) {
			told[plainField(f.Field)] = true
			out = append(out, f)
		}
	}
	for _, part := range fieldTexts(at.Text, i.Fields) {
		if told[plainField(part.Field)] || part.Field == "" && len(out) > 0 {
			continue
		}
		one := at
		if known {
			one = place(part.Field)
		}
		one.Text = part.Text
		out = append(out, one)
	}
	return out
}

// isAbout reports whether a finding of Check is about the value, or the line without one, that an agent refuses.
func (f Finding) isAbout(at Finding) bool {
	if f.Warning || f.File != at.File || f.Key != at.Key {
		return false
	}
	return at.Key == "" && f.Line == at.Line || at.Key != "" && hasModel(at.Key)
}

// hasModel reports whether agentctl knows how values of a key look. Only then does Check judge them.
func hasModel(key string) bool {
	_, _, ok := models.BuiltIn().ByKey(key)
	return ok
}

// plainField returns the path of a field in one of its notations.
func plainField(field string) string { return strings.ToLower(strings.ReplaceAll(field, "_", "")) }

// withoutKind returns the text of an error without the words that say what kind of error it is: the line
// that the text is on says so already.
func withoutKind(text string) string { return strings.TrimPrefix(text, "invalid value: ") }

// fieldTexts divides the text of an error that lists invalid fields: each part begins with its field. If that
// is not its form, the text is one part without a field, or with the only one.
func fieldTexts(text string, fields []string) []Finding {
	rest, ok := strings.CutPrefix(text, first(fields))
	if len(fields) == 0 || !ok {
		return []Finding{{Text: text}}
	}
	var out []Finding
	for i, field := range fields {
		part := rest
		if i+1 < len(fields) {
			end := slices.Max([]int{strings.Index(rest, "; "+fields[i+1]), strings.Index(rest, "\n"+fields[i+1])})
			if end < 0 {
				return []Finding{{Text: text, Field: field}}
			}
			part, rest = rest[:end], strings.TrimPrefix(strings.TrimLeft(rest[end:], ";\n "), fields[i+1])
		}
		out = append(out, Finding{Field: field, Text: field + part})
	}
	return out
}

// first returns the first of some texts; without any, it is empty.
func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// Invalid returns an error that lists values that the agent refuses, or nil if there are none; see Refused.
// The message begins with what happens to them.
func (ds Documents) Invalid(effect string, invalid []wire.Invalid) error {
	if len(invalid) == 0 {
		return nil
	}
	var b strings.Builder
	for _, f := range ds.Refused(invalid) {
		b.WriteString("\n  " + f.String())
	}
	return fmt.Errorf("%s:%s", effect, &b)
}

// Warnings returns the warnings of the agent about the documents.
func (ds Documents) Warnings(all []wire.Warning) (out []Finding) {
	for _, w := range all {
		f := Finding{Key: w.Key, Text: show.Remote(w.Text), Warning: true}
		if w.Line > 0 {
			f.File, f.Line = ds.at(w.Line)
		}
		out = append(out, f)
	}
	return out
}

// at returns the file and the line in it of a line of the whole text.
func (ds Documents) at(line int) (name string, in int) {
	for _, d := range ds {
		lines := strings.Count(string(d.text), "\n") + strings.Count(separator, "\n")
		if line <= lines || len(ds) == 1 {
			return d.name, line
		}
		line -= lines
	}
	return "", line
}

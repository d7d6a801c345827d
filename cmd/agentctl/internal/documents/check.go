package documents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A Finding is a mistake in a file, or a warning.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1
	Key     string `json:"key,omitempty"`
	Field   string `json:"field,omitempty"`
	Text    string `json:"text"`
	Warning bool   `json:"warning,omitempty"`
}

// String returns the finding as compilers print it. What only the agent knows may have no place, or no column.
func (f Finding) String() string {
	var b strings.Builder
	switch {
	case f.File == "" && f.Line > 0: // of a text that is no file
		fmt.Fprintf(&b, "line %d: ", f.Line)
	case f.Column > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", show.Line(f.File), f.Line, f.Column)
	case f.File != "":
		fmt.Fprintf(&b, "%s:%d: ", show.Line(f.File), f.Line)
	}
	if f.Warning {
		b.WriteString("warning: ")
	}
	if f.Key != "" {
		b.WriteString(show.Line(f.Key) + ": ")
	}
	return b.String() + show.Remote(f.Text)
}

// Check checks the documents against the models of r, without an agent: syntax, names and types of
// fields, their limits, and keys. Values that refer to others which no document has get a warning:
// an agent may have them from elsewhere. Findings are in the order of the documents.
func (ds Documents) Check(r *models.Registry) []Finding {
	c := ds.checked(r)
	c.missing()
	order := ds.order()
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return c.found
}

// checked returns a checker that has read the documents. It does not look for missing values.
func (ds Documents) checked(r *models.Registry) *checker {
	c := &checker{form: structured.For(r), models: r, keys: map[string]Finding{}, places: map[string]func(string) Finding{}}
	for _, d := range ds {
		c.file = d.name
		c.text(d)
	}
	return c
}

// order returns the number of each file.
func (ds Documents) order() map[string]int {
	out := map[string]int{}
	for i, d := range ds {
		out[d.name] = i
	}
	return out
}

// A checker collects the findings of all documents.
type checker struct {
	form   structured.Form
	models *models.Registry
	file   string
	found  []Finding
	keys   map[string]Finding                    // first place of each key
	places map[string]func(field string) Finding // of the fields of the first value of each key
	uses   []use
}

// A use is a value that refers to others.
type use struct {
	value proto.Message
	json  []byte // as the document spells it
	place func(field string) Finding
}

// text checks one text.
func (c *checker) text(d file) {
	format := document.YAML // which JSON on standard input is too
	if filepath.Ext(d.name) == ".json" {
		format = document.JSONText
	}
	text, err := c.form.Read(context.Background(), d.text, format)
	if err != nil {
		c.add(Finding{Line: 1, Column: 1}, err)
		return
	}
	if text.Empty() {
		c.add(Finding{Line: 1, Column: 1}, errNoValues)
	}
	for _, doc := range text.Documents {
		at := Finding{Line: doc.Root.Line, Column: doc.Root.Column}
		c.items(doc.Root, doc.Items)
		for _, err := range doc.Faults {
			c.add(at, err)
		}
		for _, err := range doc.Ignored {
			at.Warning = true
			c.add(at, err)
			c.found[len(c.found)-1].Text += "; it has no effect"
		}
	}
	for _, err := range text.Faults {
		c.add(Finding{Line: 1, Column: 1}, err)
	}
}

// add adds an error, at its own place if it has one.
func (c *checker) add(at Finding, err error) {
	if err == nil {
		return
	}
	at.File, at.Text = c.file, err.Error()
	if e, ok := errors.AsType[*document.Error](err); ok {
		at.Line, at.Column, at.Text = e.Line, max(e.Column, 1), e.Msg
	}
	c.found = append(c.found, at)
}

// items checks the values of a document.
func (c *checker) items(doc *yaml.Node, items []structured.Item) {
	for _, it := range items {
		key := withoutAgent(it.Key)
		at := Finding{File: c.file, Line: it.Line, Column: it.Column, Key: key}
		for _, w := range it.Warnings {
			c.add(Finding{Line: it.Line, Column: it.Column, Key: key, Warning: true}, w)
		}
		if first, twice := c.keys[key]; twice && key != "" {
			c.add(at, fmt.Errorf("the key is already at %s:%d: expected it once", show.Line(first.File), first.Line))
		} else {
			c.keys[key] = at
		}
		place := func(field string) Finding {
			out := at
			out.Field = field
			out.Line, out.Column = structured.Place(doc, it, field)
			return out
		}
		if c.places[key] == nil {
			c.places[key] = place
		}
		if it.Err != nil {
			c.invalid(at, place, it.Err)
			c.others(at, place, it)
			continue
		}
		if it.Value == nil {
			continue // a removal
		}
		v, err := c.models.Decode(key, it.Value)
		if v != nil {
			if m, ok := c.models.ForMessage(v); ok && models.BuiltIn().Has(m) {
				wrong := limits.Check(v)
				models.SpellFields(wrong, it.Value)
				err = errors.Join(err, wrong)
			}
			c.uses = append(c.uses, use{v, it.Value, place})
		}
		c.invalid(at, place, err)
	}
}

// invalid adds each field in err at its own place, or err as a whole.
func (c *checker) invalid(at Finding, place func(string) Finding, err error) {
	fields := models.FieldErrors(err)
	if len(fields) == 0 {
		c.add(at, err)
	}
	for _, e := range fields {
		f := place(e.Field)
		f.Text = e.Error()
		c.found = append(c.found, f)
	}
}

// others checks the limits of the fields of an invalid value that have a valid type. Fields that
// the error names are omitted.
func (c *checker) others(at Finding, place func(string) Finding, it structured.Item) {
	var fields map[string]json.RawMessage
	if it.Model == nil || !models.BuiltIn().Has(it.Model) || json.Unmarshal(it.Value, &fields) != nil {
		return
	}
	known, omitted := it.Model.New().ProtoReflect().Descriptor().Fields(), map[string]bool{}
	for _, path := range models.Fields(it.Err) {
		name := firstOf(path)
		omitted[name] = true
		delete(fields, name)
		if fd := known.ByTextName(name); fd != nil {
			delete(fields, fd.JSONName())
		}
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return
	}
	v, err := it.Model.Unmarshal(rest)
	if err != nil {
		return
	}
	wrong := limits.Check(v)
	models.SpellFields(wrong, it.Value)
	for _, e := range models.FieldErrors(wrong) {
		if !omitted[firstOf(e.Field)] && e.Expected != "" { // the wrong field may be a required one, misspelled
			c.invalid(at, place, e)
		}
	}
}

// firstOf returns the first element of the path of a field.
func firstOf(path string) string {
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end]
	}
	return path
}

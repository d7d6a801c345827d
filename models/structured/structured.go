// Package structured reads and writes many values as one document, the form that
// people prefer: a group for each southbound, in it a field for each model.
//
//	linuxConfig:
//	  interfaces:
//	    - {name: veth1, type: VETH, ...}
//	  routes:
//	    - {dst_network: 10.1.0.0/16, ...}
//
// Names of groups and fields are those that models.ByConfigField knows. Each value
// becomes an [Item] with its key and its place in the document; a fault is the
// fault of its item alone. Items come in the order of the document. [Pairs] reads the plainer
// form, a list of {key, value}. Nothing is kept
// between calls. Tests: a table of documents and complaints, what Format writes is
// read back as the same, and fuzzing.
package structured

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// An Item is one value of a document.
type Item struct {
	Model *models.Model // nil: that of the Key
	Key   string        // "config/..."; "" where the content does not tell it
	Value []byte        // JSON with the fields as they stand; nil where it cannot be written so
	Line  int           // where the item begins, from 1
	// Column is where it begins in the line, from 1, in bytes.
	Column int
	// Err is why the value is no value of Model, an *document.Error.
	Err error
	// Warnings are what was read leniently, each a *document.Error.
	Warnings []error
}

// Parse reads the values of a document, or of several in one text. The errors
// are faults that belong to no item; all are *document.Error.
func Parse(data []byte, f document.Format) ([]Item, []error) {
	docs, err := document.Read(data, f)
	if err != nil {
		return nil, []error{err}
	}
	budget := document.NewBudget(context.Background())
	var items []Item
	var errs []error
	for _, doc := range docs {
		fields, err := budget.Fields(doc)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, field := range fields {
			more, moreErrs := Group(budget, field)
			items = append(items, more...)
			errs = append(errs, moreErrs...)
		}
	}
	return items, errs
}

// Group reads one field of the document's top level. A field that is no group is
// an error that lists the groups, and others that the caller also knows. The budget is that of
// the whole text; when its context ends, the items that are left have its error.
func Group(budget *document.Budget, group document.Field, others ...string) ([]Item, []error) {
	known := models.ConfigFields(group.Name)
	if len(known) == 0 {
		return nil, []error{unknown(group, append(others, models.ConfigGroups()...))}
	}
	if isNull(group.Value) {
		return nil, nil
	}
	fields, err := budget.Fields(group.Value)
	if err != nil {
		return nil, []error{err}
	}
	var items []Item
	var errs []error
	for _, field := range fields {
		m, repeated, ok := models.ByConfigField(group.Name, field.Name)
		if !ok {
			errs = append(errs, unknown(field, known))
			continue
		}
		values, err := valuesOf(field, repeated)
		if err != nil {
			errs = append(errs, err)
		}
		for _, n := range values {
			items = append(items, item(budget, m, n))
		}
	}
	return items, errs
}

// valuesOf returns the nodes of a field's values.
func valuesOf(field document.Field, repeated bool) ([]*yaml.Node, error) {
	switch n := document.Resolve(field.Value); {
	case isNull(n):
		return nil, nil
	case !repeated:
		return []*yaml.Node{field.Value}, nil
	case n.Kind != yaml.SequenceNode:
		return nil, document.At(field.Value, "%s: found %s: expected a list: \"- \" before each value", field.Name, document.Kind(n))
	default:
		return n.Content, nil
	}
}

// item reads the value in n.
func item(budget *document.Budget, m *models.Model, n *yaml.Node) Item {
	it := Item{Model: m, Line: n.Line, Column: n.Column}
	fields, err := budget.Fields(n)
	if err != nil {
		it.Err = err
		return it
	}
	if err = it.read(budget, n, m); err != nil {
		it.Key, it.Err = salvage(budget, m, fields), err
		return it
	}
	v, err := m.Unmarshal(it.Value)
	if err == nil {
		it.Key, err = m.Key(v)
	} else {
		it.Key = salvage(budget, m, fields)
	}
	if err != nil {
		it.Err = document.Wrap(locate(budget, n, err), err)
	}
	return it
}

// locate returns the node that err is about: that of the first field it names, or
// what is nearest above it.
func locate(budget *document.Budget, n *yaml.Node, err error) *yaml.Node {
	paths := models.Fields(err)
	if len(paths) == 0 {
		return n
	}
	at := n
	for _, step := range strings.FieldsFunc(paths[0], func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(budget, document.Resolve(n), step)
		if next == nil {
			break
		}
		at, n = next.at, next.value
	}
	return at
}

type place struct{ at, value *yaml.Node }

// child is what a step of a path leads to: a field in either spelling, or an element.
func child(budget *document.Budget, n *yaml.Node, step string) *place {
	if n.Kind == yaml.SequenceNode {
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(n.Content) {
			return nil
		}
		return &place{n.Content[i], n.Content[i]}
	}
	fields, err := budget.Fields(n)
	if err != nil {
		return nil
	}
	for _, f := range fields {
		if f.Name == step || sameField(f.Name, step) {
			return &place{f.At, f.Value}
		}
	}
	return nil
}

// sameField tells whether two names are spellings of one field: "dst_network" and "dstNetwork".
func sameField(a, b string) bool {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	return plain(a) == plain(b)
}

func isNull(n *yaml.Node) bool {
	n = document.Resolve(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func unknown(f document.Field, known []string) error {
	err := fmt.Errorf("unknown field %s: expected one of %s", document.Quote(f.Name), strings.Join(known, ", "))
	if near := nearest.Word(f.Name, known); near != "" {
		err = fmt.Errorf("unknown field %s: did you mean %s?", document.Quote(f.Name), near)
	}
	return document.Wrap(f.At, err)
}

// Package structured reads and writes many values as one document, the notation for
// files: a group for each southbound, with a field for each model.
//
//	linuxConfig:
//	  interfaces:
//	    - {name: veth1, type: VETH, ...}
//	  routes:
//	    - {dst_network: 10.1.0.0/16, ...}
//
// A [Form] reads and writes the values of some models; models.Registry.ByConfigField
// defines the names of groups and fields. Each value becomes an [Item] with its key and
// its position in the document. An invalid value does not affect the others. Items have
// the order of the document. [Form.Pairs] reads the other form, a list of {key, value}.
//
// The package keeps no state. Tests: a table of documents and errors, round trips of
// Format, and fuzzing.
package structured

import (
	"context"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A Form is the notation of the values of some models.
type Form struct{ models *models.Registry }

// For returns the notation of the values of the models in r.
func For(r *models.Registry) Form { return Form{r} }

// An Item is one value of a document.
type Item struct {
	Model *models.Model // nil for Pairs: the key determines it
	Key   string        // "config/..."; "" if the content does not determine it
	Value []byte        // JSON with the fields as written; nil if they cannot be written as JSON
	Line  int           // line of the item, from 1
	// Column is the position in the line, from 1, in bytes.
	Column int
	// Err is the reason why the value is invalid, an *document.Error.
	Err error
	// Warnings are notations that were accepted leniently, each an *document.Error.
	Warnings []error
}

// Parse is Read without a deadline, for texts that may have no ignored part: those are errors too.
func (form Form) Parse(data []byte, f document.Format) ([]Item, []error) {
	text, err := form.Read(context.Background(), data, f)
	if err != nil {
		return nil, []error{err}
	}
	items, faults, ignored := text.All()
	return items, append(faults, ignored...)
}

// Group reads one field at the top level of a document. A field that is not a group
// is an error with a list of the groups and of others, which the caller handles. The
// budget covers the whole text; when its context ends, the remaining items have its
// error.
func (form Form) Group(budget *document.Budget, group document.Field, others ...string) ([]Item, []error) {
	known := form.models.ConfigFields(group.Name)
	if len(known) == 0 {
		return nil, []error{unknown(group, append(others, form.models.ConfigGroups()...), form.prefixesOf)}
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
		m, repeated, ok := form.models.ByConfigField(group.Name, field.Name)
		if !ok {
			errs = append(errs, unknown(field, known, func(name string) []string { return form.prefixesIn(group.Name, name) }))
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

// prefixesOf returns the prefixes of the keys of all values in a group.
func (form Form) prefixesOf(group string) []string {
	return form.prefixesIn(group, form.models.ConfigFields(group)...)
}

// prefixesIn returns the prefixes of the keys of the values in fields of a group.
func (form Form) prefixesIn(group string, fields ...string) (out []string) {
	for _, field := range fields {
		if m, _, ok := form.models.ByConfigField(group, field); ok {
			out = append(out, m.Prefix())
		}
	}
	return out
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

// item reads the value in n. If the value is invalid, its key is determined as far
// as possible.
func item(budget *document.Budget, m *models.Model, n *yaml.Node) Item {
	it := Item{Model: m, Line: n.Line, Column: n.Column}
	fields, err := budget.Fields(n)
	if err != nil {
		it.Err = err
		return it
	}
	err = it.read(budget, n, m)
	if err != nil {
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

// locate returns the node of the first field in err, or its nearest ancestor that
// exists.
func locate(budget *document.Budget, n *yaml.Node, err error) *yaml.Node {
	paths := models.Fields(err)
	if len(paths) == 0 {
		return n
	}
	return locatePath(budget, n, paths[0])
}

// locatePath returns the node of a field by its path.
func locatePath(budget *document.Budget, n *yaml.Node, path string) *yaml.Node {
	at := n
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(budget, document.Resolve(n), step)
		if next == nil {
			break
		}
		at, n = next.at, next.value
	}
	return at
}

// A place is an entry of a collection: the node to report, and its value.
type place struct{ at, value *yaml.Node }

// child returns the field or the element that a step of a path names.
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

// sameField compares names in both notations: "dst_network" and "dstNetwork".
func sameField(a, b string) bool {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	return plain(a) == plain(b)
}

// isNull reports whether the node is null or empty.
func isNull(n *yaml.Node) bool {
	n = document.Resolve(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

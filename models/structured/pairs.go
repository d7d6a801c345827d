package structured

import (
	"cmp"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models/structured/document"
)

// Pairs reads a list of {key, value}, the other form of a document. Its items have
// no Model. Key is as written, even if the value is invalid; Value is nil if it is
// null or absent. The budget covers the whole text.
func (form Form) Pairs(budget *document.Budget, list *yaml.Node) ([]Item, error) {
	if isNull(list) {
		return nil, nil
	}
	n := document.Resolve(list)
	if n.Kind != yaml.SequenceNode {
		return nil, document.At(list, "found %s: expected a list of {key, value}", document.Kind(n))
	}
	var items []Item
	for _, n := range n.Content {
		items = append(items, form.pair(budget, n))
	}
	return items, nil
}

// pair reads one entry of the list.
func (form Form) pair(budget *document.Budget, n *yaml.Node) Item {
	it := Item{Line: n.Line, Column: n.Column}
	fields, err := budget.Fields(n)
	if err != nil {
		it.Err = err
		return it
	}
	for _, f := range fields {
		it.Err = cmp.Or(it.Err, form.part(&it, budget, f, fields))
	}
	if it.Err == nil && it.Key == "" {
		it.Err = document.At(n, "entry without a key: expected {key, value}")
	}
	if it.Err != nil {
		it.Value = nil
	}
	return it
}

// part reads one field of a pair; all are the fields of the pair.
func (form Form) part(it *Item, budget *document.Budget, f document.Field, all []document.Field) (err error) {
	v := document.Resolve(f.Value)
	switch {
	case f.Name == "key" && v.Kind == yaml.ScalarNode && !isNull(v):
		it.Key = v.Value
	case f.Name == "key":
		err = document.At(f.Value, "key: found %s: expected text", document.Kind(v))
	case f.Name == "value" && !isNull(v):
		err = it.read(budget, f.Value, form.modelIn(all))
	case f.Name != "value":
		err = document.At(f.At, "unknown field %s: expected key and value", document.Quote(f.Name))
	}
	return err
}

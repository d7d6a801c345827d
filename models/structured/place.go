package structured

import (
	"context"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models/structured/document"
)

// Place returns line and column of a field of an item, or of its nearest ancestor in the document;
// field is a path as in models.FieldError. doc is the document of the item. It searches the whole
// document, so it is for errors only.
func Place(doc *yaml.Node, it Item, field string) (line, column int) {
	n := nodeAt(doc, it)
	if n == nil {
		return it.Line, it.Column
	}
	budget := document.NewBudget(context.Background())
	if fields, err := budget.Fields(n); err == nil && it.Model == nil {
		for _, f := range fields {
			if f.Name == "value" { // of a pair
				n = document.Resolve(f.Value)
			}
		}
	}
	at := locatePath(budget, n, field)
	return at.Line, at.Column
}

// nodeAt returns the collection that begins at the place of an item, or nil.
func nodeAt(n *yaml.Node, it Item) *yaml.Node {
	if n.Kind == yaml.MappingNode && n.Line == it.Line && n.Column == it.Column {
		return n
	}
	for _, one := range n.Content {
		if found := nodeAt(one, it); found != nil {
			return found
		}
	}
	return nil
}

package structured

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A Text is what a text says: in a file, in a request, or on standard input. Everything that reads
// values reads them with [Form.Read], so all of it says the same about a text.
//
// A group or a field of a group that no model has, and that resembles none, is Ignored: it belongs to
// another program. One that resembles a name is a fault, as it may be a misspelt one; [MayHide] tells
// which values. A field that begins with "x-" or "." at the top level holds anchors for the rest, and
// nobody is told of it.
type Text struct {
	Documents []Document
	// Faults concern the whole text, or the end of a text that may be cut off. Each is an
	// *document.Error.
	Faults []error
	// Cut is the fault of a text that ends with a key or a dash without a value; nil: it does not.
	// Faults has it too.
	Cut error
}

// A Document is one document of a text.
type Document struct {
	Root  *yaml.Node
	Items []Item
	// Declares means that there is a known group or a list of {key, value}, although perhaps an empty
	// one, or {}, which says that no value is meant.
	Declares bool
	// Faults concern no single item. Ignored are parts without effect. Each is an *document.Error.
	Faults, Ignored []error
}

// errNoField is the error of a name that no model has, and that resembles none.
var errNoField = errors.New("unknown field")

// Read reads the values of all documents in a text, in each form: groups such as linuxConfig, a list
// of {key, value}, and such a list in the field "data". It fails only if nothing can be read, or if
// ctx ends.
func (form Form) Read(ctx context.Context, data []byte, format document.Format) (out Text, err error) {
	docs, err := document.ReadContext(ctx, data, format)
	if err != nil {
		return out, err
	}
	budget := document.NewBudget(ctx)
	for _, root := range docs {
		out.Documents = append(out.Documents, form.document(budget, root))
	}
	if format == document.YAML {
		out.Cut = document.Unfinished(data, docs)
	}
	if out.Cut != nil {
		out.Faults = append(out.Faults, out.Cut)
	}
	return out, nil
}

// All returns the items, the faults, and the ignored parts of all documents.
func (t Text) All() (items []Item, faults, ignored []error) {
	for _, d := range t.Documents {
		items, faults, ignored = append(items, d.Items...), append(faults, d.Faults...), append(ignored, d.Ignored...)
	}
	return items, append(faults, t.Faults...), ignored
}

// Empty reports whether a text declares nothing, not even an empty group or list, and has no faults.
func (t Text) Empty() bool {
	declares := func(d Document) bool { return d.Declares || len(d.Items)+len(d.Faults) > 0 }
	return len(t.Faults) == 0 && !slices.ContainsFunc(t.Documents, declares)
}

// document reads one document.
func (form Form) document(budget *document.Budget, root *yaml.Node) Document {
	out := Document{Root: root}
	add := func(items []Item, errs ...error) {
		out.Items = append(out.Items, items...)
		for _, err := range errs {
			switch {
			case errors.Is(err, errNoField):
				out.Ignored = append(out.Ignored, err)
			case err != nil:
				out.Faults = append(out.Faults, err)
			}
		}
	}
	if document.Resolve(root).Kind == yaml.SequenceNode {
		items, err := form.Pairs(budget, root)
		add(items, err)
		out.Declares = true
		return out
	}
	fields, err := budget.Fields(root)
	add(nil, err)
	out.Declares = err == nil && len(fields) == 0 && document.Resolve(root).Kind == yaml.MappingNode
	for _, f := range fields {
		switch {
		case f.Name == dataField:
			out.Declares = true
			items, err := form.Pairs(budget, f.Value)
			add(items, err)
		case !holdsAnchors(f.Name):
			out.Declares = out.Declares || len(form.models.ConfigFields(f.Name)) > 0
			items, errs := form.Group(budget, f, dataField)
			add(items, errs...)
		}
	}
	return out
}

// dataField is the field with a list of {key, value}.
const dataField = "data"

// holdsAnchors reports whether a field at the top level holds parts for the rest of the document,
// by the conventions of Compose and of GitLab.
func holdsAnchors(name string) bool {
	return strings.HasPrefix(name, "x-") || strings.HasPrefix(name, ".")
}

// A misspelt name is the cause of a fault. Its values have keys with one of these prefixes.
type misspelt struct{ prefixes []string }

func (*misspelt) Error() string { return "a misspelt name" }

// MayHide returns the prefixes of the keys of which a fault of a document may hide values; nil: of any.
func MayHide(fault error) []string {
	if m, ok := errors.AsType[*misspelt](fault); ok {
		return m.prefixes
	}
	return nil
}

// unknown returns an error about an unknown field, with a suggestion. Then it wraps a misspelt name,
// with the prefixes of the name that is meant, and otherwise errNoField.
func unknown(f document.Field, known []string, prefixesOf func(name string) []string) error {
	if near := nearest.Word(f.Name, known); near != "" {
		err := document.At(f.At, "unknown field %s: did you mean %s?", document.Quote(f.Name), near)
		err.Err = &misspelt{prefixesOfAll(nearest.Words(f.Name, known), prefixesOf)}
		return err
	}
	err := document.At(f.At, "unknown field %s: expected one of %s", document.Quote(f.Name), strings.Join(known, ", "))
	err.Err = errNoField
	return err
}

// prefixesOfAll returns the prefixes of all names, since any of them may be meant; nil: one of them has values of any key.
func prefixesOfAll(names []string, prefixesOf func(string) []string) (all []string) {
	for _, name := range names {
		prefixes := prefixesOf(name)
		if len(prefixes) == 0 {
			return nil
		}
		all = append(all, prefixes...)
	}
	return all
}

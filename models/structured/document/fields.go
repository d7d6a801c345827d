package document

import (
	"context"

	"go.yaml.in/yaml/v3"
)

// A Field is one entry of a mapping.
type Field struct {
	Name  string
	At    *yaml.Node // node of the name
	Value *yaml.Node // may be an alias
}

// Fields returns the entries of a mapping in order, followed by the entries of merge
// keys ("<<: *defaults"). It returns an *Error if the node is not a mapping or a
// name occurs twice. Use Budget.Fields for texts from outside.
func Fields(n *yaml.Node) ([]Field, error) {
	return NewBudget(context.Background()).Fields(n)
}

// Fields is the function Fields within this budget.
func (b *Budget) Fields(n *yaml.Node) ([]Field, error) { return b.fields(n, 0) }

// fields is Fields at a depth of nested merge keys, which may refer to each other.
func (b *Budget) fields(n *yaml.Node, depth int) ([]Field, error) {
	m := Resolve(n)
	if m.Kind != yaml.MappingNode {
		return nil, At(n, "found %s: expected a mapping", Kind(n))
	}
	if depth > mostDepth {
		return nil, tooDeep(n)
	}
	out := make([]Field, 0, len(m.Content)/2)
	seen := make(map[string]*yaml.Node, len(m.Content)/2)
	var sources []*yaml.Node
	for i := 0; i < len(m.Content); i += 2 {
		name, value := Resolve(m.Content[i]), m.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			return nil, At(name, "found %s: expected the name of a field", Kind(name))
		}
		if name.ShortTag() == "!!merge" {
			sources = append(sources, mergeSources(value)...)
			continue
		}
		if first := seen[name.Value]; first != nil {
			return nil, At(name, "field %s occurs twice, first in line %d", Quote(name.Value), first.Line)
		}
		seen[name.Value] = name
		out = append(out, Field{name.Value, name, value})
	}
	return b.merge(out, seen, sources, depth)
}

// mergeSources returns the mappings of a merge key: one, or a list.
func mergeSources(value *yaml.Node) []*yaml.Node {
	if list := Resolve(value); list.Kind == yaml.SequenceNode {
		return list.Content
	}
	return []*yaml.Node{value}
}

// mergedField is the cost of a merged field in bytes, besides name and value.
const mergedField = 4

// merge appends fields of other mappings. Fields that exist already take precedence.
func (b *Budget) merge(out []Field, seen map[string]*yaml.Node, sources []*yaml.Node, depth int) ([]Field, error) {
	for _, source := range sources {
		if err := b.spend(source, mergedField); err != nil {
			return nil, err
		}
		fields, err := b.fields(source, depth+1)
		if err != nil {
			return nil, err
		}
		if err := b.step(); err != nil {
			return nil, err
		}
		for _, f := range fields {
			if err := b.spend(source, len(f.Name)+mergedField); err != nil {
				return nil, err
			}
			if seen[f.Name] == nil {
				seen[f.Name] = f.At
				out = append(out, f)
			}
		}
	}
	return out, nil
}

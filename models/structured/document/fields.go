package document

import "go.yaml.in/yaml/v3"

// A Field is one entry of a mapping.
type Field struct {
	Name  string
	At    *yaml.Node // the name's node
	Value *yaml.Node // resolved
}

// Fields returns the entries of a mapping in their order, with what merge keys
// ("<<: *defaults") bring in after its own. Something that is no mapping, and a
// name that comes twice, are an *Error.
func Fields(n *yaml.Node) ([]Field, error) { return fieldsOf(n, 0) }

func fieldsOf(n *yaml.Node, depth int) ([]Field, error) {
	m := Resolve(n)
	if m.Kind != yaml.MappingNode {
		return nil, At(n, "found %s: want a mapping", Kind(n))
	}
	if depth > mostDepth {
		return nil, At(n, "nested deeper than %d levels", mostDepth)
	}
	out := make([]Field, 0, len(m.Content)/2)
	seen := make(map[string]*yaml.Node, len(m.Content)/2)
	var merged []*yaml.Node
	for i := 0; i < len(m.Content); i += 2 {
		name, value := m.Content[i], m.Content[i+1]
		if name.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if Resolve(name).Kind != yaml.ScalarNode {
			return nil, At(name, "found %s: want the name of a field", Kind(name))
		}
		f := Field{Resolve(name).Value, name, Resolve(value)}
		if first := seen[f.Name]; first != nil {
			return nil, At(name, "field %s is here twice, first in line %d", Quote(f.Name), first.Line)
		}
		seen[f.Name] = name
		out = append(out, f)
	}
	return merge(out, seen, merged, depth)
}

// merge appends the fields of merged mappings that are not there yet.
func merge(out []Field, seen map[string]*yaml.Node, merged []*yaml.Node, depth int) ([]Field, error) {
	for _, one := range merged {
		sources := []*yaml.Node{one}
		if list := Resolve(one); list.Kind == yaml.SequenceNode {
			sources = list.Content
		}
		for _, source := range sources {
			fields, err := fieldsOf(source, depth+1)
			if err != nil {
				return nil, err
			}
			for _, f := range fields {
				if seen[f.Name] == nil {
					seen[f.Name] = f.At
					out = append(out, f)
				}
			}
		}
	}
	return out, nil
}

package export

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// A pair is a value that only its key places: its model has no group in a document.
type pair struct {
	key   string
	value []byte // JSON
}

// listOf writes pairs as the field data of a document; "" for none.
func listOf(pairs []pair) (string, error) {
	if len(pairs) == 0 {
		return "", nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, p := range pairs {
		value, err := valueOf(p.value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.key, err)
		}
		list.Content = append(list.Content, mapping("key", text(p.key), "value", value))
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(mapping("data", list)); err != nil {
		return "", err
	}
	return out.String(), e.Close()
}

// valueOf returns JSON as a node. JSON is YAML; its quotes and braces stay, so no text can turn
// into a number.
func valueOf(data []byte) (*yaml.Node, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("%.80q is no JSON", data)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	return doc.Content[0], nil
}

// mapping returns a mapping of alternating names and nodes.
func mapping(fields ...any) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		if name, ok := f.(string); ok {
			out.Content = append(out.Content, text(name))
		} else {
			out.Content = append(out.Content, f.(*yaml.Node))
		}
	}
	return out
}

// text returns a text as a node, which the encoder quotes if necessary.
func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// joined returns two documents as one text. Without both, it is an empty mapping: readers expect a
// mapping.
func joined(groups, list string) string {
	switch {
	case groups == "" && list == "":
		return "{}\n"
	case groups == "" || list == "":
		return groups + list
	}
	return groups + "---\n" + list
}

package structured

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models/structured/document"
)

// Format writes values as one YAML document: groups and fields in the order of the
// models, values of a model in the given order. It uses Model and Value of each
// item. A model without a field in the structured form is an error.
func (form Form) Format(items []Item) ([]byte, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if text, ok, err := form.formatQuickly(items); ok || err != nil {
		return text, err
	}
	return form.formatSlowly(items)
}

// formatSlowly is Format with the encoder.
func (form Form) formatSlowly(items []Item) ([]byte, error) {
	byField := map[[2]string][]*yaml.Node{}
	for _, it := range items {
		node, err := it.node()
		if err != nil {
			return nil, err
		}
		group, field := it.Model.ConfigField()
		byField[[2]string{group, field}] = append(byField[[2]string{group, field}], node)
	}
	return encode(form.root(byField))
}

// node returns the value of an item as a node without the quotes of JSON.
func (it Item) node() (*yaml.Node, error) {
	if _, field := it.Model.ConfigField(); field == "" {
		return nil, fmt.Errorf("a value of %s has no place in a configuration document", it.Model.Name())
	}
	nodes, err := document.Read(it.Value, document.JSONText)
	if err != nil {
		return nil, fmt.Errorf("value of %s: %w", it.Model.Name(), err)
	}
	if len(nodes) != 1 {
		return nil, fmt.Errorf("value of %s: %d JSON values: expected one", it.Model.Name(), len(nodes))
	}
	asTyped(nodes[0])
	return nodes[0], nil
}

// root builds the document from the nodes of each field.
func (form Form) root(byField map[[2]string][]*yaml.Node) *yaml.Node {
	doc := mapping()
	for _, group := range form.models.ConfigGroups() {
		in := mapping()
		for _, field := range form.models.ConfigFields(group) {
			if values := byField[[2]string{group, field}]; values != nil {
				_, repeated, _ := form.models.ByConfigField(group, field)
				add(in, field, fieldNode(values, repeated))
			}
		}
		if len(in.Content) > 0 {
			add(doc, group, in)
		}
	}
	return doc
}

// fieldNode returns the node of a field: a list, or the last value of a singleton.
func fieldNode(values []*yaml.Node, repeated bool) *yaml.Node {
	if !repeated {
		return values[len(values)-1]
	}
	return &yaml.Node{Kind: yaml.SequenceNode, Content: values}
}

// encode writes the document as YAML.
func encode(doc *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out.Bytes(), e.Close()
}

// mapping returns an empty mapping.
func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// add appends an entry to a mapping.
func add(m *yaml.Node, name string, value *yaml.Node) {
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
}

// asTyped removes the quotes of JSON. The encoder adds quotes only where YAML needs
// them. Text with tabs or line breaks stays quoted: the encoder would write it as a block,
// and its own parser refuses a block that begins with a tab.
func asTyped(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || !strings.ContainsAny(n.Value, "\t\n\v\f\r\u0085\u2028\u2029") {
		n.Style = 0
	}
	for _, one := range n.Content {
		asTyped(one)
	}
}

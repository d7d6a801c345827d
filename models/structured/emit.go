package structured

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An emitter writes nodes in the form of yaml.Encoder with an indentation of 2, several times
// faster: documents of 100,000 values are common, and almost all of their texts are plain words,
// numbers and addresses. For each other text it asks the encoder.
type emitter struct {
	out  bytes.Buffer
	odd  map[string]string // texts from the encoder, by tag, style and value
	fits bool              // false: only the encoder can write these nodes
}

func newEmitter(odd map[string]string) *emitter { return &emitter{odd: odd, fits: true} }

// formatQuickly is Format with emitters: the nodes of a value are garbage as soon as it is
// written. It returns false if a value has something that only the encoder can write.
func (form Form) formatQuickly(items []Item) ([]byte, bool, error) {
	const indent = 4 // of the values of a field: it is an entry of a group, which is an entry of the document
	fields, odd := map[[2]string]*emitter{}, map[string]string{}
	for _, it := range items {
		node, err := it.node()
		if err != nil {
			return nil, false, err
		}
		group, field := it.Model.ConfigField()
		at := [2]string{group, field}
		e := fields[at]
		if e == nil || it.Model.Singleton() { // the last value of a singleton counts
			e = newEmitter(odd)
			fields[at] = e
		}
		switch {
		case !it.Model.Singleton():
			e.indent(true, indent)
			e.out.WriteString("- ")
			e.block(node, indent+2)
		case len(node.Content) == 0:
			e.block(node, indent)
		default:
			e.indent(true, indent)
			e.block(node, indent)
		}
		if !e.fits {
			return nil, false, nil
		}
	}
	var out bytes.Buffer
	for _, group := range form.models.ConfigGroups() {
		header := group + ":\n"
		for _, field := range form.models.ConfigFields(group) {
			e := fields[[2]string{group, field}]
			if e == nil {
				continue
			}
			separator := ":\n"
			if text := e.out.Bytes(); text[0] != ' ' { // an empty singleton
				separator = ": "
			}
			out.WriteString(header + "  " + field + separator)
			out.Write(e.out.Bytes())
			header = ""
		}
	}
	return out.Bytes(), true, nil
}

// block writes a node and the end of its line. The cursor is at the column indent for
// collections, which begin there, and anywhere for scalars.
func (e *emitter) block(n *yaml.Node, indent int) {
	scalar := n.Kind == yaml.ScalarNode
	e.fits = e.fits && isBare(n) && (scalar || isCollection(n))
	switch {
	case !e.fits:
	case scalar:
		e.scalar(n)
		e.out.WriteByte('\n')
	case len(n.Content) == 0:
		e.out.WriteString(map[bool]string{true: "{}\n", false: "[]\n"}[n.Kind == yaml.MappingNode])
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			e.indent(i > 0, indent)
			e.entry(n.Content[i], n.Content[i+1], indent)
		}
	default:
		for i, one := range n.Content {
			e.indent(i > 0, indent)
			e.out.WriteString("- ")
			e.block(one, indent+2)
		}
	}
}

// isBare reports whether a node has neither a comment nor an anchor.
func isBare(n *yaml.Node) bool {
	return n.Anchor == "" && n.HeadComment == "" && n.LineComment == "" && n.FootComment == ""
}

// isCollection reports whether a node is a mapping or a sequence in the usual style.
func isCollection(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode:
		return n.Style == 0 && (n.Tag == "" || n.Tag == "!!map")
	case yaml.SequenceNode:
		return n.Style == 0 && (n.Tag == "" || n.Tag == "!!seq")
	default:
		return false
	}
}

// entry writes an entry of a mapping.
func (e *emitter) entry(key, value *yaml.Node, indent int) {
	if key.Kind != yaml.ScalarNode || !isPlain(key) || len(key.Value) > 100 { // longer ones have another form
		e.fits = false
		return
	}
	e.out.WriteString(key.Value)
	if value.Kind == yaml.ScalarNode || len(value.Content) == 0 {
		e.out.WriteString(": ")
		e.block(value, indent)
		return
	}
	e.out.WriteString(":\n")
	e.indent(true, indent+2)
	e.block(value, indent+2)
}

// indent writes the spaces at the start of a line, unless the cursor is there already.
func (e *emitter) indent(needed bool, n int) {
	for ; needed && n > 0; n-- {
		e.out.WriteByte(' ')
	}
}

// scalar writes a text, a number or a truth value.
func (e *emitter) scalar(n *yaml.Node) {
	if isPlain(n) {
		e.out.WriteString(n.Value)
		return
	}
	id := n.Tag + " " + string(rune('0'+n.Style)) + n.Value
	text, known := e.odd[id]
	if !known {
		alone, err := encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "k"}, n}})
		line, whole := strings.CutSuffix(strings.TrimPrefix(string(alone), "k: "), "\n")
		if err != nil || !whole || strings.Contains(line, "\n") { // a block, whose lines depend on its place
			e.fits = false
			return
		}
		text = line
		if len(e.odd) < 1<<12 { // such as MAC addresses; each may be another one
			e.odd[id] = text
		}
	}
	e.out.WriteString(text)
}

// isPlain reports whether a scalar is written as it is. It may say no for some that are.
func isPlain(n *yaml.Node) bool {
	if n.Value == "" || n.Style != 0 || n.Anchor != "" {
		return false
	}
	switch n.Tag {
	case "!!bool":
		return n.Value == "true" || n.Value == "false"
	case "!!int":
		return len(n.Value) < 19 && strings.Trim(n.Value, digits) == "" && (n.Value[0] != '0' || len(n.Value) == 1)
	case "", "!!str":
		return isPlainText(n.Value)
	default:
		return false
	}
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// isPlainText reports whether a text is written without quotes.
func isPlainText(text string) bool {
	if strings.ContainsRune("._-/", rune(text[0])) && text[0] != '_' || strings.Trim(text, letters+digits+"_.-/") != "" {
		return false
	}
	// A word that begins with a digit could be a number or a date, but not if it has a slash.
	isWord := strings.IndexByte(letters, text[0]) >= 0
	return strings.Contains(text, "/") || isWord && !isReserved(text)
}

// isReserved reports whether YAML, or an older version of it, gives a word another meaning.
func isReserved(word string) bool {
	switch strings.ToLower(word) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}

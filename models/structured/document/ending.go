package document

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/yamlplace"
)

// Tail returns the nodes from the root of a document to its last node.
func Tail(doc *yaml.Node) (tail []*yaml.Node) {
	for n := doc; ; n = n.Content[len(n.Content)-1] {
		tail = append(tail, n)
		if len(n.Content) == 0 {
			return tail
		}
	}
}

// Unfinished returns an *Error if a YAML text ends with a key or dash without a
// value, or with "---". Such a file was probably read while it was being written. A
// comment after the last key, or a last line "...", marks the text as complete. docs
// is the result of Read for data.
func Unfinished(data []byte, docs []*yaml.Node) error {
	last, line := yamlplace.LastLine(data)
	if string(last) == "---" {
		return &Error{Line: line, Column: 1, Msg: `ends with "---", as if it were cut off there`}
	}
	if len(docs) == 0 || !bytes.HasSuffix(last, []byte(":")) && !bytes.HasSuffix(last, []byte("-")) {
		return nil
	}
	tail := Tail(docs[len(docs)-1])
	inBrackets := slices.ContainsFunc(tail, func(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 })
	leaf := tail[len(tail)-1]
	if len(tail) < 2 || inBrackets || leaf.Kind != yaml.ScalarNode || leaf.ShortTag() != "!!null" || leaf.Value != "" {
		return nil
	}
	parent := tail[len(tail)-2]
	if parent.Kind != yaml.MappingNode {
		return &Error{Line: line, Msg: `ends with a "-" that has no value, as if it were cut off there: expected a value, or null`}
	}
	key := parent.Content[len(parent.Content)-2]
	return At(key, "ends with %s, which has no value, as if it were cut off there: expected a value, [], {} or null", Quote(key.Value))
}

// An Ending tells whether a text may be cut off.
type Ending int

const (
	// EndsComplete: JSON, which cannot be cut without a syntax error, or YAML with a
	// last line "...".
	EndsComplete Ending = iota
	// EndsLine: YAML that ends with a line feed, or an empty text. Lines may be
	// missing.
	EndsLine
	// EndsInLine: YAML without a final line feed. The last value may be cut.
	EndsInLine
)

// EndingOf returns the ending of a text.
func EndingOf(data []byte, f Format) Ending {
	last, _ := yamlplace.LastLine(data)
	switch {
	case len(last) == 0:
		return EndsLine
	case f == JSONText || string(last) == "...":
		return EndsComplete
	case data[len(data)-1] == '\n':
		return EndsLine
	}
	return EndsInLine
}

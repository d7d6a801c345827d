package document

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Shape says what is expected where a node stands. A nil Shape expects nothing in particular.
type Shape interface {
	// Field is the shape of a field of a mapping; nil: not known.
	Field(name string) Shape
	// Bool says that a boolean is expected, or a list of booleans.
	Bool() bool
}

// oldBools are the words that are booleans in YAML 1.1 and plain text in YAML 1.2. The reader of
// YAML that older agents used takes them for booleans.
func oldBools() map[string]bool {
	return map[string]bool{"y": true, "yes": true, "on": true, "n": false, "no": false, "off": false}
}

// oldBool returns the boolean that a plain word is in YAML 1.1. Quoted words are text.
func oldBool(n *yaml.Node) (value, ok bool) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	if n.Kind != yaml.ScalarNode || n.Style&quoted != 0 {
		return false, false
	}
	word := n.Value
	if word != strings.ToUpper(word) && word != strings.ToLower(word) && word[1:] != strings.ToLower(word[1:]) {
		return false, false // YAML 1.1 has yes, Yes and YES, not yEs
	}
	value, ok = oldBools()[strings.ToLower(word)]
	return value, ok
}

func fieldOf(s Shape, name string) Shape {
	if s == nil {
		return nil
	}
	return s.Field(name)
}

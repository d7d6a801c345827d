package document

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Shape describes the expected type of a node. A nil Shape expects nothing in
// particular.
type Shape interface {
	// Field returns the shape of a field of a mapping, or nil if it is unknown.
	Field(name string) Shape
	// Bool reports whether a boolean or a list of booleans is expected.
	Bool() bool
}

// oldBools are the booleans of YAML 1.1, which are plain text in YAML 1.2. The
// parsers of older agents accept them.
func oldBools() map[string]bool {
	return map[string]bool{"y": true, "yes": true, "on": true, "n": false, "no": false, "off": false}
}

// oldBool returns the YAML 1.1 boolean of a plain word. Quoted words are text.
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

// fieldOf returns the shape of a field, or nil.
func fieldOf(s Shape, name string) Shape {
	if s == nil {
		return nil
	}
	return s.Field(name)
}

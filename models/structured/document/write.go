package document

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models"
)

// JSON writes a node as compact JSON: fields in their order, numbers as written
// (hexadecimal and octal ones as decimal), dates and binary data as text. A node
// without a JSON form, such as infinity, is an *Error.
func JSON(n *yaml.Node) ([]byte, error) {
	out, _, err := JSONOf(n, nil)
	return out, err
}

// JSONOf is JSON with a known shape. Where the shape expects a boolean, it also
// accepts those of YAML 1.1, such as yes, with a warning.
func JSONOf(n *yaml.Node, shape Shape) (out []byte, warnings []*Error, err error) {
	return NewBudget(context.Background()).JSONOf(n, shape)
}

// JSONOf is the function JSONOf within this budget. A value of more than
// models.MaxSize bytes is an *Error, before it needs more memory.
func (b *Budget) JSONOf(n *yaml.Node, shape Shape) (out []byte, warnings []*Error, err error) {
	w := writer{budget: b}
	if err := w.value(n, 0, shape); err != nil {
		return nil, nil, err
	}
	return w.out, w.warnings, nil
}

// A writer converts one node.
type writer struct {
	warnings []*Error
	out      []byte
	budget   *Budget
	inAlias  bool // the current node is below an alias
}

// value writes a node. Bytes below an alias are counted in the budget.
func (w *writer) value(n *yaml.Node, depth int, shape Shape) error {
	if n.Kind == yaml.AliasNode && !w.inAlias {
		w.inAlias = true
		defer func() { w.inAlias = false }()
	}
	if err := w.budget.step(); err != nil {
		return err
	}
	if depth > mostDepth {
		return tooDeep(n)
	}
	switch n := Resolve(n); n.Kind {
	case yaml.MappingNode:
		return w.mapping(n, depth, shape)
	case yaml.SequenceNode:
		return w.list(n, depth, shape)
	default:
		if err := w.takes(n, len(n.Value)+len(`""`)); err != nil {
			return err
		}
		return w.scalar(n, shape)
	}
}

// takes counts bytes before they are written.
func (w *writer) takes(n *yaml.Node, size int) error {
	if len(w.out)+size > models.MaxSize {
		return At(n, "the value is too large; the maximum is %d bytes", models.MaxSize)
	}
	if w.inAlias {
		return w.budget.spend(n, size)
	}
	return nil
}

// mapping writes a mapping with its merged fields.
func (w *writer) mapping(n *yaml.Node, depth int, shape Shape) error {
	fields, err := w.budget.fields(n, depth)
	if err != nil {
		return err
	}
	if err := w.takes(n, len("{}")); err != nil {
		return err
	}
	w.out = append(w.out, '{')
	for i, f := range fields {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.string(f.Name)
		w.out = append(w.out, ':')
		if err := w.takes(n, len(f.Name)+len(`"":,`)); err != nil {
			return err
		}
		if err := w.value(f.Value, depth+1, fieldOf(shape, f.Name)); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// list writes a sequence. Its elements have the shape of the list.
func (w *writer) list(n *yaml.Node, depth int, shape Shape) error {
	if err := w.takes(n, len("[]")+len(n.Content)); err != nil {
		return err
	}
	w.out = append(w.out, '[')
	for i, one := range n.Content {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(one, depth+1, shape); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

// scalar writes a value by its YAML type.
func (w *writer) scalar(n *yaml.Node, shape Shape) error {
	if b, old := oldBool(n); old && shape != nil && shape.Bool() {
		w.out = strconv.AppendBool(w.out, b)
		w.warnings = append(w.warnings, At(n, "%s is taken for %t, as in YAML 1.1; write %t", n.Value, b, b))
		return nil
	}
	switch n.ShortTag() {
	case "!!null":
		w.out = append(w.out, "null"...)
	case "!!bool":
		return w.bool(n)
	case "!!int", "!!float":
		return w.number(n)
	default:
		w.string(n.Value)
	}
	return nil
}

// bool writes a boolean.
func (w *writer) bool(n *yaml.Node) error {
	var b bool
	if n.Decode(&b) != nil {
		return At(n, "found %s: expected true or false", Quote(n.Value))
	}
	w.out = strconv.AppendBool(w.out, b)
	return nil
}

// number writes a number: unchanged if it is valid JSON, otherwise in decimal.
func (w *writer) number(n *yaml.Node) error {
	if json.Valid([]byte(n.Value)) && n.Value != "null" {
		w.out = append(w.out, n.Value...)
		return nil
	}
	var signed int64
	var unsigned uint64
	var float float64
	whole := n.ShortTag() == "!!int"
	switch {
	case whole && n.Decode(&signed) == nil:
		w.out = strconv.AppendInt(w.out, signed, 10)
	case whole && n.Decode(&unsigned) == nil:
		w.out = strconv.AppendUint(w.out, unsigned, 10)
	case n.Decode(&float) == nil && !math.IsInf(float, 0) && !math.IsNaN(float):
		w.out = strconv.AppendFloat(w.out, float, 'g', -1, 64)
	default:
		return At(n, "found %s: expected a finite number", Quote(n.Value))
	}
	return nil
}

// string writes text. It does not escape <, > and &, because values are not embedded
// in HTML.
func (w *writer) string(s string) {
	if isPlain(s) {
		w.out = append(append(append(w.out, '"'), s...), '"')
		return
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a strings.Builder never fails
	w.out = append(w.out, strings.TrimSuffix(b.String(), "\n")...)
}

// isPlain reports whether text needs no escapes in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

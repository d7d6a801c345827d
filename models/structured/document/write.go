package document

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostAliased is how many nodes aliases may add to a value: enough for any
// honest use, and an end to documents that grow when they are read.
const mostAliased = 100_000

// JSON writes a node as JSON without spaces: fields in their order, numbers as
// they stand (hexadecimal and octal ones in decimal), dates and binary data as
// text. What JSON cannot say is an *Error.
func JSON(n *yaml.Node) ([]byte, error) {
	w := writer{}
	if err := w.value(n, 0); err != nil {
		return nil, err
	}
	return w.out, nil
}

type writer struct {
	out     []byte
	aliased int  // nodes written below aliases
	inAlias bool // the node at hand is below one
}

func (w *writer) value(n *yaml.Node, depth int) error {
	if n.Kind == yaml.AliasNode && !w.inAlias {
		w.inAlias = true
		defer func() { w.inAlias = false }()
	}
	if w.inAlias {
		w.aliased++
	}
	if depth > mostDepth || w.aliased > mostAliased {
		return At(n, "nested too deeply, or grown too much by aliases")
	}
	switch n := Resolve(n); n.Kind {
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.SequenceNode:
		return w.list(n, depth)
	default:
		return w.scalar(n)
	}
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	fields, err := Fields(n)
	if err != nil {
		return err
	}
	w.out = append(w.out, '{')
	for i, f := range fields {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.string(f.Name)
		w.out = append(w.out, ':')
		if err := w.value(f.Value, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *writer) list(n *yaml.Node, depth int) error {
	w.out = append(w.out, '[')
	for i, one := range n.Content {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(one, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *writer) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out = append(w.out, "null"...)
	case "!!bool":
		w.out = strconv.AppendBool(w.out, strings.EqualFold(n.Value, "true"))
	case "!!int", "!!float":
		return w.number(n)
	default:
		w.string(n.Value)
	}
	return nil
}

func (w *writer) number(n *yaml.Node) error {
	if json.Valid([]byte(n.Value)) && n.Value != "null" {
		w.out = append(w.out, n.Value...)
		return nil
	}
	var signed int64
	var unsigned uint64
	var float float64
	switch {
	case n.Decode(&signed) == nil:
		w.out = strconv.AppendInt(w.out, signed, 10)
	case n.Decode(&unsigned) == nil:
		w.out = strconv.AppendUint(w.out, unsigned, 10)
	case n.Decode(&float) == nil:
		return w.float(n, float)
	default:
		return At(n, "found %s: want a number", Quote(n.Value))
	}
	return nil
}

func (w *writer) float(n *yaml.Node, f float64) error {
	out, err := json.Marshal(f)
	if err != nil {
		return At(n, "found %s: want a finite number", Quote(n.Value))
	}
	w.out = append(w.out, out...)
	return nil
}

// string leaves <, > and & as they are: values are read by people, not by browsers.
func (w *writer) string(s string) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a Builder takes everything
	w.out = append(w.out, strings.TrimSuffix(b.String(), "\n")...)
}

package document

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readJSON parses a sequence of JSON values.
func readJSON(ctx context.Context, data []byte) ([]*yaml.Node, error) {
	r := jsonReader{budget: NewBudget(ctx), data: data, dec: json.NewDecoder(bytes.NewReader(data)), places: newPlaces(data)}
	r.dec.UseNumber()
	var docs []*yaml.Node
	for {
		n, err := r.value(0)
		switch {
		case errors.Is(err, io.EOF):
			return docs, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, r.wrap(err)
		case n.Kind == yaml.ScalarNode && len(docs) > 0 && n.ShortTag() != "!!null":
			// Each byte of "000..." is such a value. Nodes does not count them, so they would
			// exceed all bounds of memory.
			return nil, At(n, "%.20q follows another value: expected an object or a list", n.Value)
		case n.ShortTag() != "!!null":
			docs = append(docs, n)
		}
	}
}

// A jsonReader converts JSON tokens to nodes.
type jsonReader struct {
	budget *Budget
	data   []byte
	dec    *json.Decoder
	places places
}

// value reads one value.
func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	if err := r.budget.step(); err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	n.Line, n.Column = r.places.of(r.next())
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return n, r.collection(n, token, depth+1)
	case string:
		n.Tag, n.Value, n.Style = "!!str", token, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!int", token.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if token {
			n.Value = "true"
		}
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// collection reads the elements of n up to the closing bracket. Names of fields are
// elements too, as in YAML nodes.
func (r *jsonReader) collection(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	if depth > mostDepth {
		return tooDeep(n)
	}
	for r.dec.More() {
		one, err := r.value(depth)
		if err != nil {
			return unexpectedEnd(err)
		}
		n.Content = append(n.Content, one)
	}
	_, err := r.dec.Token()
	return unexpectedEnd(err)
}

// unexpectedEnd turns io.EOF within a value into an error.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// next returns the offset of the next token.
func (r *jsonReader) next() int {
	at := int(r.dec.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	return at
}

// wrap adds the position to an error.
func (r *jsonReader) wrap(err error) error {
	if place, ok := errors.AsType[*Error](err); ok {
		return place
	}
	at, msg := r.next(), err.Error()
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		msg = "not valid JSON: " + strings.TrimPrefix(msg, "json: ")
	} else if errors.Is(err, io.ErrUnexpectedEOF) {
		at, msg = len(r.data), "not valid JSON: it ends too early"
	}
	line, column := r.places.of(at)
	return &Error{Line: line, Column: column, Msg: msg, Err: err}
}

// places are the offsets of the lines.
type places []int

// newPlaces finds the lines of data.
func newPlaces(data []byte) places {
	p := places{0}
	for at, b := range data {
		if b == '\n' {
			p = append(p, at+1)
		}
	}
	return p
}

// of returns line and column of an offset, both from 1, by binary search.
func (p places) of(at int) (line, column int) {
	line = sort.SearchInts(p, at+1)
	return line, at - p[line-1] + 1
}

package rest

import (
	"errors"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// An item is what a body says about one key.
type item struct {
	key   string // empty where it is not known
	value []byte // JSON; nil: nothing should stand
	line  int
	err   error // why it is no value
}

// parse reads a body in YAML or JSON: a list of {key, value}, or a mapping that has
// such a list as data, or groups such as linuxConfig, or both. It fails only
// where nothing of it can be read.
func parse(body []byte) ([]item, error) {
	docs, err := document.Read(body, document.YAML)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, errors.New("the body is empty: want keys and values, in YAML or JSON")
	}
	var items []item
	for _, doc := range docs {
		if document.Resolve(doc).Kind == yaml.SequenceNode {
			items = append(items, pairs(doc)...)
			continue
		}
		fields, err := document.Fields(doc)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			items = append(items, group(f)...)
		}
	}
	return items, nil
}

func group(f document.Field) (out []item) {
	if f.Name == "data" {
		return pairs(f.Value)
	}
	items, errs := structured.Group(f, "data")
	for _, it := range items {
		out = append(out, item{it.Key, it.Value, it.Line, it.Err})
	}
	for _, err := range errs {
		out = append(out, faulty("", err))
	}
	return out
}

// faulty is an item that is none.
func faulty(key string, err error) item {
	it := item{key: key, err: err}
	if at, ok := errors.AsType[*document.Error](err); ok {
		it.line = at.Line
	}
	return it
}

// pairs reads a list of {key, value}.
func pairs(list *yaml.Node) (out []item) {
	list = document.Resolve(list)
	if list.Kind != yaml.SequenceNode {
		return []item{faulty("", document.At(list, "found %s: want a list of {key, value}", document.Kind(list)))}
	}
	for _, n := range list.Content {
		out = append(out, pair(n))
	}
	return out
}

func pair(n *yaml.Node) item {
	fields, err := document.Fields(n)
	if err != nil {
		return faulty("", err)
	}
	out := item{line: n.Line}
	for _, f := range fields {
		v := document.Resolve(f.Value)
		switch {
		case f.Name == "key" && v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null":
			out.key = v.Value
		case f.Name == "key":
			return faulty("", document.At(f.Value, "key: found %s: want text", document.Kind(f.Value)))
		case f.Name != "value":
			return faulty(out.key, document.At(f.At, "unknown field %s: want key and value", document.Quote(f.Name)))
		case v.ShortTag() != "!!null":
			if out.value, err = document.JSON(f.Value); err != nil {
				return faulty(out.key, err)
			}
		}
	}
	if out.key == "" {
		return faulty("", document.At(n, "entry without a key: want {key, value}"))
	}
	return out
}

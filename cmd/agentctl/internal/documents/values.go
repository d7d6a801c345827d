package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A Value is one value of the documents. Message is nil if the document asks for its removal.
type Value struct {
	Key     string // without the agent's prefix
	Message proto.Message
	Place   string // file and line
}

// ErrIgnored is the error of documents with parts that none of the models has. The values of the
// others are returned with it. Another agent may have such a model.
var ErrIgnored = errors.New("no model of the agent has parts of the files, which have no effect")

// Values returns the values of the documents, in their order. The error lists all that are invalid,
// with file and line, and then there are no values; or it is ErrIgnored.
func (ds Documents) Values(r *models.Registry) ([]Value, error) {
	return ds.each(r, func(it structured.Item) (Value, error) {
		if it.Err != nil || it.Value == nil {
			return Value{Key: it.Key}, it.Err
		}
		m, err := r.Decode(it.Key, it.Value)
		return Value{Key: it.Key, Message: m}, err
	})
}

// Pairs returns the changes of a store for values. Full completes a key. A key may occur once.
func Pairs(values []Value, full func(short string) (string, error)) (out []kvdbsync.Pair, err error) {
	known := map[string]bool{}
	for _, v := range values {
		if known[v.Key] {
			return nil, fmt.Errorf("nothing was written: the key %s is there twice: expected it once", show.Line(v.Key))
		}
		known[v.Key] = true
		p := kvdbsync.Pair{}
		if p.Key, err = full(v.Key); err != nil {
			return nil, err
		}
		if v.Message != nil {
			if err := models.CheckSecrets(v.Message); err != nil {
				return nil, fmt.Errorf("nothing was written: %s: %w", show.Line(v.Key), err)
			}
			if p.Value, err = models.JSON(v.Message); err != nil {
				return nil, fmt.Errorf("%s: %w", show.Line(v.Key), err)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// Keys returns the keys of the values of the documents, for their removal: only the fields that
// make its key matter in a value.
func (ds Documents) Keys(r *models.Registry) ([]Value, error) {
	return ds.each(r, func(it structured.Item) (Value, error) {
		if it.Key == "" && it.Err == nil {
			it.Err = errors.New("the value has no key")
		}
		if it.Key != "" { // which is known although another field is invalid
			it.Err = nil
		}
		return Value{Key: it.Key}, it.Err
	})
}

// each calls value for each item of the documents, and joins the errors.
func (ds Documents) each(r *models.Registry, value func(structured.Item) (Value, error)) (out []Value, err error) {
	var wrong, without strings.Builder
	for _, d := range ds {
		items, ignored, err := parse(structured.For(r), d.text)
		for _, part := range ignored {
			without.WriteString("\n  " + show.Line(d.name) + ":" + lineOf(structured.Item{}, part))
		}
		if err != nil {
			items = append(items, structured.Item{Err: err})
		}
		for _, it := range items {
			it.Key = withoutAgent(it.Key)
			v, err := value(it)
			if err == nil {
				v.Place = fmt.Sprintf("%s:%d", d.name, it.Line)
				out = append(out, v)
				continue
			}
			wrong.WriteString("\n  " + show.Line(d.name) + ":" + lineOf(it, err))
		}
	}
	if wrong.Len() > 0 {
		return nil, fmt.Errorf("nothing was changed, because values are invalid:%s", cmp.Or(ds.mistakes(r), wrong.String()))
	}
	if without.Len() > 0 {
		return out, fmt.Errorf("%w:%s", ErrIgnored, &without)
	}
	return out, nil
}

// mistakes returns the mistakes that Check finds, with a line feed before each.
func (ds Documents) mistakes(r *models.Registry) string {
	var b strings.Builder
	for _, f := range ds.Check(r) {
		if !f.Warning {
			b.WriteString("\n  " + f.String())
		}
	}
	return b.String()
}

// lineOf returns the place, the key and the error of an item.
func lineOf(it structured.Item, err error) string {
	text := err.Error()
	if at, ok := errors.AsType[*document.Error](err); ok {
		it.Line, it.Column, text = at.Line, at.Column, at.Msg
	}
	out := ""
	if it.Line > 0 {
		out = fmt.Sprintf("%d:%d:", it.Line, max(it.Column, 1))
	}
	if it.Key != "" {
		out += " " + show.Line(it.Key) + ":"
	}
	return out + " " + show.Remote(text)
}

// withoutAgent returns a key without the prefix of an agent: /vnf-agent/LABEL/.
func withoutAgent(key string) string {
	if rest, ok := strings.CutPrefix(key, "/vnf-agent/"); ok {
		_, key, _ = strings.Cut(rest, "/")
	}
	return key
}

// parse reads the values of a text. Faults of the text are items with an error. Ignored are the parts
// that no model has.
func parse(form structured.Form, text []byte) (items []structured.Item, ignored []error, err error) {
	read, err := form.Read(context.Background(), text, document.YAML) // JSON is YAML
	if err != nil {
		return nil, nil, err
	}
	items, faults, ignored := read.All()
	if read.Empty() && len(ignored) == 0 { // other models may have those
		return nil, nil, errNoValues
	}
	for _, err := range faults {
		items = append(items, structured.Item{Err: err})
	}
	return items, ignored, nil
}

// errNoValues is the error of a text that declares nothing.
var errNoValues = errors.New("no values: expected keys and values, in YAML or JSON")

// ErrEmpty is the error of documents without a value, where they would replace others.
var ErrEmpty = errors.New("nothing was changed: the input has no values, so --replace would withdraw all: expected values, or --allow-empty")

// Declare reports whether the documents have a group or a list of values, although perhaps an empty
// one, or a mistake. If only other models could understand them, the error is ErrIgnored.
func (ds Documents) Declare(r *models.Registry) (any bool, err error) {
	for _, d := range ds {
		read, wrong := structured.For(r).Read(context.Background(), d.text, document.YAML)
		if wrong != nil || !read.Empty() {
			return true, nil
		}
		if _, _, ignored := read.All(); len(ignored) > 0 {
			err = ErrIgnored
		}
	}
	return false, err
}

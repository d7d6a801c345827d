// Package body reads the values in the body of a request, in YAML or JSON. It bounds the memory
// and time of a body, and ends when its request does.
//
//	b := body.Of(text)
//	leave, err := memory.Enter(ctx, b.Cost())
//	defer leave()
//	items, err := b.Items(ctx, form)
package body

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// beginning is the number of bytes of a text that are read before memory for all of it is taken. The
// bodies of all connections at once may have so much.
const beginning = 128 << 10

// Read reads a text of about length bytes, or fewer than most if length is negative. It takes the
// memory of a large text at once, after a call of large. A buffer that grows takes three times as much, of
// which two are garbage. An error of large ends the reading.
func Read(r io.Reader, length, most int64, large func() error) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, beginning))
	if err != nil || len(text) < beginning {
		return text, err
	}
	if err := large(); err != nil {
		return nil, err
	}
	if length < 0 {
		length = most
	}
	whole := bytes.NewBuffer(make([]byte, 0, max(length, beginning)+bytes.MinRead))
	whole.Write(text)
	_, err = whole.ReadFrom(r)
	return whole.Bytes(), err
}

// A Body is the text of a request with values.
type Body struct {
	// The caller's bytes, which must not change as long as the Body is used.
	text []byte
	// quick means that structured.Quick reads the text. It needs no tree of nodes, which would
	// take several times the memory of the values.
	quick bool
}

// Of returns the body with a text. It reads the text once, without keeping anything of it.
func Of(text []byte) Body { return Body{text, structured.IsQuick(text)} }

// bytesOfItem is about the memory, in bytes, that a value takes while it is planned, besides
// its text: its message, its node, its edges, and the operation.
const bytesOfItem = 2000

// Cost returns the memory that the values need while they are read and planned, in bytes.
func (b Body) Cost() int64 {
	if b.quick {
		return int64(bytes.Count(b.text, []byte(`"key"`)))*bytesOfItem + 2*int64(len(b.text))
	}
	return document.Cost(b.text)
}

// Items returns the values. An item with a nil Value requests removal; an invalid item has its
// error. Ignored are the parts without effect. Items itself fails only if nothing is readable, with
// the line in the error, or if ctx ends.
func (b Body) Items(ctx context.Context, form structured.Form) (items []structured.Item, ignored []error, err error) {
	if b.quick {
		items = make([]structured.Item, 0, bytes.Count(b.text, []byte(`"key"`)))
		structured.Quick(b.text, func(it structured.Item) { items = append(items, it) })
		return items, nil, nil
	}
	items, ignored, err = parse(ctx, form, b.text)
	// The client has gone; the error of a parser that was stopped is not one of the text.
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if at, ok := errors.AsType[*document.Error](err); ok {
		err = fmt.Errorf("line %d: %s", at.Line, at.Msg)
	}
	return items, ignored, err
}

// parse reads a text in YAML or JSON. An item with a nil Value requests removal. Invalid items are
// returned with their error; parse itself fails only if nothing is readable.
func parse(ctx context.Context, form structured.Form, body []byte) (items []structured.Item, ignored []error, err error) {
	// JSON is YAML, so one reader serves both.
	text, err := form.Read(ctx, body, document.YAML)
	if err != nil {
		return nil, nil, err
	}
	if len(text.Documents) == 0 {
		return nil, nil, errors.New("the body is empty: expected keys and values, in YAML or JSON")
	}
	// A request that replaces would withdraw everything. [], {} or a group says that this is meant.
	if _, _, ignored := text.All(); text.Empty() && len(ignored) > 0 {
		return nil, nil, ignored[0]
	}
	if text.Empty() {
		return nil, nil, errors.New("the body has no values: expected keys and values, in YAML or JSON, or [] for none")
	}
	for _, doc := range text.Documents {
		if document.Resolve(doc.Root).Kind == yaml.ScalarNode && len(doc.Faults) > 0 {
			return nil, nil, doc.Faults[0] // such as a text that is no document at all
		}
	}
	items, faults, ignored := text.All()
	return withErrors(items, faults...), ignored, nil
}

// withErrors appends errors that concern no item, each as an item without a key.
func withErrors(items []structured.Item, errs ...error) []structured.Item {
	for _, err := range errs {
		if at, ok := errors.AsType[*document.Error](err); ok {
			items = append(items, structured.Item{Line: at.Line, Err: err})
		}
	}
	return items
}

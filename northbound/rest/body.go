package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// bodyOf reads the values in the body of a request. Errors have status 400, or 413
// if the body exceeds Options.MaxBody. The memory for reading and for processing the
// values counts until leave is called. Then the client may take its time to read the
// answer.
func (h *handler) bodyOf(w http.ResponseWriter, r *http.Request) (items []structured.Item, leave func(), err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, nil, reply.Status(http.StatusRequestEntityTooLarge, fmt.Errorf("the body is too large; the maximum is %d bytes", tooLarge.Limit))
	}
	if err != nil {
		return nil, nil, reply.BadRequest(fmt.Errorf("reading the body: %w", err))
	}
	quickly := isQuick(body)
	leave, err = h.Memory.Enter(r.Context(), costOf(body, quickly))
	if err != nil {
		return nil, nil, err
	}
	items, err = h.itemsOf(r.Context(), body, quickly)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return items, leave, nil
}

// itemsOf reads the values of a body. Errors have status 400, except that of ctx.
func (h *handler) itemsOf(ctx context.Context, body []byte, quickly bool) ([]structured.Item, error) {
	if quickly {
		return parseQuickly(body), nil
	}
	items, err := parse(ctx, structured.For(h.sched.Models()), body)
	// The client has gone; the error of a parser that was stopped is not one of the text.
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if at, ok := errors.AsType[*document.Error](err); ok {
		err = fmt.Errorf("line %d: %s", at.Line, at.Msg)
	}
	return items, reply.BadRequest(err)
}

// bytesOfItem is about the memory, in bytes, that a value takes while it is planned, besides
// its text: its message, its node, its edges, and the operation.
const bytesOfItem = 1500

// costOf returns the memory that the values of a body need, in bytes.
func costOf(body []byte, quickly bool) int64 {
	if quickly {
		return int64(bytes.Count(body, []byte(`"key"`)))*bytesOfItem + 2*int64(len(body))
	}
	return document.Cost(body)
}

// isQuick reports whether structured.Quick reads the body. Such a body needs no tree of
// nodes, which would take several times the memory of its values.
func isQuick(body []byte) bool { return structured.Quick(body, func(structured.Item) {}) }

// parseQuickly returns the items of a body that isQuick.
func parseQuickly(body []byte) []structured.Item {
	items := make([]structured.Item, 0, bytes.Count(body, []byte(`"key"`)))
	structured.Quick(body, func(it structured.Item) { items = append(items, it) })
	return items
}

// parse reads a body in YAML or JSON: a list of {key, value}, a mapping with such a
// list in the field "data", groups such as linuxConfig, or both. An item with a nil
// Value requests removal. Invalid items are returned with their error; parse itself
// fails only if nothing is readable.
func parse(ctx context.Context, form structured.Form, body []byte) (items []structured.Item, err error) {
	// JSON is YAML, so one reader serves both.
	docs, err := document.ReadContext(ctx, body, document.YAML)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, errors.New("the body is empty: expected keys and values, in YAML or JSON")
	}
	budget := document.NewBudget(ctx)
	for _, doc := range docs {
		if document.Resolve(doc).Kind == yaml.SequenceNode {
			pairs, err := form.Pairs(budget, doc)
			items = append(items, withErrors(pairs, err)...)
			continue
		}
		fields, err := budget.Fields(doc)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			items = append(items, field(form, budget, f)...)
		}
	}
	return items, nil
}

// field reads one field of the top-level mapping.
func field(form structured.Form, budget *document.Budget, f document.Field) []structured.Item {
	if f.Name == "data" {
		pairs, err := form.Pairs(budget, f.Value)
		return withErrors(pairs, err)
	}
	items, errs := form.Group(budget, f, "data")
	return withErrors(items, errs...)
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

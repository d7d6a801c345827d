package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	yaml4 "go.yaml.in/yaml/v4"

	"github.com/keyplane/keyplane/internal/guard"
)

// readYAML parses YAML documents. A panic of the library becomes an error: texts
// come from outside.
func readYAML(ctx context.Context, data []byte) (docs []*yaml.Node, err error) {
	err = guard.Run(func() error {
		docs, err = decodeYAML(ctx, data)
		return err
	})
	if bug, ok := errors.AsType[*guard.Panic](err); ok {
		return nil, &Error{Line: 1, Msg: fmt.Sprintf("cannot be read as YAML: %v", bug.Value)}
	}
	return docs, err
}

// decodeYAML decodes all documents that are not empty.
func decodeYAML(ctx context.Context, data []byte) (docs []*yaml.Node, err error) {
	d := yaml.NewDecoder(&ctxReader{ctx, bytes.NewReader(data)})
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, yamlError(ctx, data, err)
		}
		if root := n.Content[0]; Resolve(root).ShortTag() != "!!null" {
			docs = append(docs, root)
		}
	}
}

// A ctxReader returns an error after its context has ended, which stops the parser
// within a long text.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call
	io.Reader
}

// Read implements io.Reader.
func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// yamlError returns the error of the library as an error at the place of the mistake.
func yamlError(ctx context.Context, data []byte, err error) error {
	place := placeOf(ctx, data)
	if place == nil {
		place = firstGuess(err)
	}
	if strings.Contains(place.Msg, "cannot start any token") {
		place.Msg += " (indent with spaces, not with tabs; quote values that begin with @, ` or %)"
	}
	return place
}

// placeOf parses an invalid text again, with the next version of the library, and returns its
// error. The errors of version 3 lack the place: their line is that of the outermost collection
// which the parser was reading, less one, or there is none. Version 4 has the same grammar and
// exact places. Its nodes are not used, because it reads some values in another way. placeOf
// returns nil if version 4 accepts the text.
func placeOf(ctx context.Context, data []byte) *Error {
	d := yaml4.NewDecoder(&ctxReader{ctx, bytes.NewReader(data)})
	for {
		err := d.Decode(&yaml4.Node{})
		switch e, ok := errors.AsType[*yaml4.LoadError](err); {
		case err == nil:
		case !ok || e.Mark.Line == 0 || e.Stage == yaml4.ConstructorStage:
			return nil
		default:
			return placed(data, e)
		}
	}
}

// placed converts an error of version 4. An unclosed quote or bracket is reported where it opens,
// because the text itself ends elsewhere.
func placed(data []byte, e *yaml4.LoadError) *Error {
	at, from := e.Mark, e.ContextMark
	end, last := lastLine(data)
	switch {
	case at.Line > last && (from.Line == 0 || from.Line > last):
		return &Error{Line: last, Column: utf8.RuneCount(end) + 1, Msg: e.Message}
	case from.Line == 0 || from.Line == at.Line:
		return &Error{Line: at.Line, Column: at.Column, Msg: e.Message}
	case at.Line > last || strings.HasSuffix(e.ContextMsg, "simple key"):
		return &Error{Line: from.Line, Column: from.Column, Msg: e.Message + " " + e.ContextMsg}
	default:
		return &Error{Line: at.Line, Column: at.Column, Msg: fmt.Sprintf("%s %s that begins in line %d", e.Message, e.ContextMsg, from.Line)}
	}
}

// lineOfError is the start of a message of version 3: "yaml: line 3: did not find ...".
var lineOfError = regexp.MustCompile(`^line (\d+): `)

// firstGuess extracts the line from an error of version 3, which may be above the mistake.
func firstGuess(err error) *Error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1 // the library omits line 1
	if m := lineOfError.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	return &Error{Line: line, Msg: msg}
}

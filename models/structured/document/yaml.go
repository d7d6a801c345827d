package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/yamlplace"
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
	at := yamlplace.Of(&ctxReader{ctx, bytes.NewReader(data)}, data, err)
	return &Error{Line: at.Line, Column: at.Column, Msg: at.Msg}
}

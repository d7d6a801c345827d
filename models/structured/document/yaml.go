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

	"go.yaml.in/yaml/v3"

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
			return nil, yamlError(err)
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

// yamlError extracts the line from the library's message: "yaml: line 3: did not
// find ...".
func yamlError(err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1 // the library omits line 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	if strings.Contains(msg, "cannot start any token") {
		msg += " (indent with spaces, not with tabs; quote values that begin with @, ` or %)"
	}
	return &Error{Line: line, Msg: msg}
}

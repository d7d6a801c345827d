package consul

import (
	"context"
	"io"
	"time"
)

// A patientBody is the body of an answer. It may take long on a slow line, but a pause
// longer than the timeout ends the request.
type patientBody struct {
	io.ReadCloser
	client *client
	ctx    context.Context // of the request
	limit  time.Duration
	late   *time.Timer // runs while Read waits for a byte
}

// patiently limits the pauses of a body: it cancels the request's context after one that
// is too long.
func (c *client) patiently(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser) io.ReadCloser {
	limit := c.cfg.OperationTimeout
	late := time.AfterFunc(limit, func() { cancel(noByte(limit)) })
	late.Stop()
	return &patientBody{ReadCloser: body, client: c, ctx: ctx, limit: limit, late: late}
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {

	b.late.Reset(b.limit)
	n, err := b.ReadCloser.Read(p)
	b.late.Stop()
	if n > 0 {
		b.client.heard.Beat()
	}
	if cause := context.Cause(b.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

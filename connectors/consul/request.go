package consul

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"
)

// A request is one call of the library, with its timeout and the current token.
type request struct {
	ctx   context.Context
	end   context.CancelFunc
	token string
}

// begun starts the timeout of a request. The caller must call its end.
func (c *client) begun(ctx context.Context) (request, error) {
	token, err := c.cfg.token()
	if err != nil {
		return request{}, err
	}
	limit := c.cfg.OperationTimeout
	ctx, end := context.WithTimeoutCause(ctx, limit, noAnswer(limit))
	return request{ctx: ctx, end: end, token: token}, nil
}

// read asks for consistency: the default of Consul may answer from a server that has lost
// its lead.
func (r request) read() *api.QueryOptions {
	return (&api.QueryOptions{Token: r.token, RequireConsistent: true}).WithContext(r.ctx)
}

// write has the token and the context of the request.
func (r request) write() *api.WriteOptions {
	return (&api.WriteOptions{Token: r.token}).WithContext(r.ctx)
}

// explain replaces the library's context error with an error about the timeout.
func (r request) explain(err error) error {
	if cause := context.Cause(r.ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// noAnswer is the error of a request that timed out.
func noAnswer(within time.Duration) error {
	return &timeoutError{"no answer within " + within.String()}
}

// noByte is the error of an answer that stopped arriving.
func noByte(within time.Duration) error {
	return &timeoutError{"the answer stopped: no byte for " + within.String()}
}

// A timeoutError says which operation took too long, and is context.DeadlineExceeded.
type timeoutError struct{ text string }

// Error names the operation and the time.
func (e *timeoutError) Error() string { return e.text }

// Unwrap makes errors.Is find context.DeadlineExceeded.
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

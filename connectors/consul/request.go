package consul

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"
)

// A request is one use of the library, with its time and the token that counts now.
type request struct {
	ctx   context.Context
	end   context.CancelFunc
	token string
}

// begun starts the time of a request, whose end is to be called.
func (c *client) begun(ctx context.Context) (request, error) {
	token, err := c.cfg.token()
	if err != nil {
		return request{}, err
	}
	limit := c.cfg.OperationTimeout
	ctx, end := context.WithTimeoutCause(ctx, limit, noAnswer(limit))
	return request{ctx: ctx, end: end, token: token}, nil
}

func (r request) read() *api.QueryOptions {
	return (&api.QueryOptions{Token: r.token, RequireConsistent: true}).WithContext(r.ctx)
}

func (r request) write() *api.WriteOptions {
	return (&api.WriteOptions{Token: r.token}).WithContext(r.ctx)
}

// explain says that the time was over where the library says that a context was.
func (r request) explain(err error) error {
	if cause := context.Cause(r.ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// noAnswer is why a request ended that took too long.
func noAnswer(within time.Duration) error {
	return &timeoutError{"no answer within " + within.String()}
}

// noByte is why an answer ended that stopped coming.
func noByte(within time.Duration) error {
	return &timeoutError{"the answer stopped: no byte for " + within.String()}
}

type timeoutError struct{ text string }

func (e *timeoutError) Error() string { return e.text }

// Unwrap tells programs what Error tells people.
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

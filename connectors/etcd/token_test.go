package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Tokens that expire are replaced as long as the caller waits. A server that refuses all tokens does not hold a request
// for ever.
func TestRepeatEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer error
		takes  time.Duration // each attempt
		least  time.Duration
	}{
		"tokens that never worked":   {rpctypes.ErrGRPCInvalidAuthToken, tokenLife / 2, tokenPatience},
		"tokens that expired":        {rpctypes.ErrGRPCInvalidAuthToken, tokenLife, time.Hour},
		"users that change and slow": {rpctypes.ErrGRPCAuthOldRevision, tokenLife, time.Hour},
		"another error":              {rpctypes.ErrGRPCPermissionDenied, tokenLife, tokenLife},
		"no user and no password":    {rpctypes.ErrGRPCUserEmpty, tokenLife, tokenLife},
		"success":                    {nil, tokenLife, tokenLife},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				begun := time.Now()
				_, err := repeat(ctx, retrier{}, func() (int, error) { <-time.After(test.takes); return 0, test.answer })
				most := test.least + test.takes + tokenPause
				if took := time.Since(begun); !errors.Is(err, test.answer) || took < test.least || took > most {
					t.Errorf("ended after %v with %v, want %v after %v to %v", took, err, test.answer, test.least, most)
				}
			})
		})
	}
}

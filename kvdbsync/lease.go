package kvdbsync

import (
	"context"
	"math"
	"time"
)

// A Leaser is a store in which a key can have one holder at a time.
type Leaser interface {
	// Lease begins a session like Publisher.Session, which can also claim keys.
	Lease(ctx context.Context, ttl time.Duration) (Lease, error)
}

// Forever is the result of Lease.Left for a key that nothing but a deletion ends.
const Forever = time.Duration(math.MaxInt64)

// A Lease is a Session that can take a key only if no other session has it.
type Lease interface {
	Session
	// Claim stores value under key in this session, if the key holds old, or is absent
	// where old is nil. The comparison and the write are one step. It returns what the
	// key holds after the call: value if the claim succeeded, nil if the key is absent.
	Claim(ctx context.Context, key string, old, value []byte) (holds []byte, err error)
	// TTL is the longest time for which a claimed key outlives its holder. It may be
	// longer than the requested time, because stores have a minimum.
	TTL() time.Duration
	// Over returns ErrSessionOver if the session is lost or closed, or has not been renewed for so long that it may be.
	// It asks nobody. A process that was paused finds here that others may have taken its keys.
	Over() error
	// Left returns for how long the store keeps a key at most, whoever wrote it, unless its writer renews it: 0 if it is
	// absent, Forever if it has no session.
	Left(ctx context.Context, key string) (time.Duration, error)
}

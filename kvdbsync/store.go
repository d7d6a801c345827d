package kvdbsync

import (
	"context"
	"time"
)

// A Pair is a key with its value.
type Pair struct {
	Key   string
	Value []byte
}

// A Store is read and written by hand or by program: by agentctl, and for
// published status. All keys are whole keys.
type Store interface {
	// Get returns ErrNotFound when the key is not there.
	Get(ctx context.Context, key string) ([]byte, error)
	// List returns the pairs under prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Pair, error)
	Put(ctx context.Context, key string, value []byte) error
	// Delete tells whether the key was there.
	Delete(ctx context.Context, key string) (existed bool, err error)
}

// MaxApply is how many changes every store makes at once.
const MaxApply = 64

// A Writer is a Store for programs. What it has written, a later Watch lists and a
// running one yields.
type Writer interface {
	Store
	// PutIfAbsent stores value unless the key is there, and tells whether it has.
	PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error)
	// Apply makes all changes at once, or none; a nil Value deletes. No key comes
	// twice. Of more than MaxApply changes, or of more bytes than it takes at once,
	// a store may say ErrTooLarge.
	Apply(ctx context.Context, changes []Pair) error
}

// A Publisher is a store that can hold keys which vanish with who wrote them.
type Publisher interface {
	// Session begins a session: what is written in it lives as long as the session
	// does, and no longer than ttl (or the store's shortest, if that is longer) after
	// the process has ended or lost the store; 0: what the store's configuration
	// says, or its own default. A store without such keys keeps them until Close; the next
	// session finds them by List.
	Session(ctx context.Context, ttl time.Duration) (Session, error)
}

// A Session writes keys that live as long as it does. A key belongs to the session
// that wrote it last. Its methods may be called at the same time.
type Session interface {
	// List returns the pairs under prefix, whoever wrote them, sorted by key.
	List(ctx context.Context, prefix string) ([]Pair, error)
	// Apply makes at most MaxApply changes; a nil Value deletes, whoever wrote it.
	// A store that can makes them at once. It fails once the session is lost or closed.
	Apply(ctx context.Context, changes []Pair) error
	// Lost is closed once what was written may have vanished: who still wants it
	// begins another session and writes it again. It says nothing after Close.
	Lost() <-chan struct{}
	// Close ends the session, also one that was lost, and leaves nothing running;
	// what was written in it vanishes, at the latest when ttl has passed.
	Close(ctx context.Context) error
}

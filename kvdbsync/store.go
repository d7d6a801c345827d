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

// A Store is read and written by people or programs: by agentctl, and for published
// status. All keys are complete keys.
type Store interface {
	// Get returns ErrNotFound for a missing key.
	Get(ctx context.Context, key string) ([]byte, error)
	// List returns the pairs under prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Pair, error)
	Put(ctx context.Context, key string, value []byte) error
	// Delete reports whether the key existed.
	Delete(ctx context.Context, key string) (existed bool, err error)
}

// MaxApply is the number of changes that every store can make at once.
const MaxApply = 64

// A Writer is a Store for programs. A later Watch lists the written pairs, and a running
// Watch yields them.
type Writer interface {
	Store
	// PutIfAbsent stores value unless the key exists, and reports whether it stored it.
	PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error)
	// PutIfSame stores value if the key holds exactly the bytes of old, and reports whether it
	// stored it. A missing key holds nothing, so it is not stored.
	PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error)
	// Apply makes all changes at once, or none. A nil Value deletes. Keys must be unique.
	// For more than MaxApply changes, or too many bytes, a store may return ErrTooLarge.
	Apply(ctx context.Context, changes []Pair) error
}

// A Publisher is a store with keys that vanish when their writer ends.
type Publisher interface {
	// Session begins a session. Its keys live as long as the session. After the process
	// has ended or lost the store, they live no longer than ttl, or than the store's
	// minimum if that is longer. A ttl of 0 is the store's configured value or default. A
	// store without expiring keys keeps them until Close, and the next session finds them
	// by List.
	Session(ctx context.Context, ttl time.Duration) (Session, error)
}

// A Session writes keys that live as long as the session. A key belongs to the session
// that wrote it last. Any goroutine may call the methods.
type Session interface {
	// List returns the pairs under prefix, of all writers, sorted by key.
	List(ctx context.Context, prefix string) ([]Pair, error)
	// Get returns the value of a key that any session may have written, or ErrNotFound. It costs
	// the store the same, however many keys the store has, unless one file holds all of them. List may not.
	Get(ctx context.Context, key string) ([]byte, error)
	// Apply makes at most MaxApply changes, at once if the store can. A nil Value deletes,
	// also keys of other writers. It fails once the session is lost or closed.
	Apply(ctx context.Context, changes []Pair) error
	// Lost is closed when the keys may have vanished. The writer then begins another
	// session and writes them again. After Close it has no meaning.
	Lost() <-chan struct{}
	// Close ends the session, also a lost one, and leaves no goroutine. Its keys vanish,
	// at the latest after ttl.
	Close(ctx context.Context) error
}

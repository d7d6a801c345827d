// Package kvdbsync is the contract between key-value stores and the rest of
// the agent, and the part of watching a store that is the same for all of them.
//
// A [Connector] knows one kind of store. All it must do is yield what the store
// holds and then what changes, and end with an error as soon as it can no
// longer promise that it has missed nothing: compaction, a lost subscription,
// an index that went backwards and an overflowed event queue all mean just
// that. A [Source] is one configured connector; it does the rest once, for all:
// it mirrors the store, drops duplicates, deletes what vanished during a gap,
// coalesces what its consumer has not yet taken, backs off with jitter, lists
// again from time to time, and tells its health.
//
// Order: changes of one key are seen in the store's order, changes that one
// store transaction made together stay together in one [Change].
//
// Tests: the mirror by stories, the Source in synthetic time and by random
// histories with faults, each connector by the suite in kvdbsync/conformance.
package kvdbsync

import (
	"context"
	"errors"
	"iter"
)

// An Event says what a store holds under a key.
type Event struct {
	Key   string // whole key, as the store has it
	Value []byte // nil: the key is gone; owned by the receiver, never changed
	Rev   int64  // the store's revision of this change; 0 where it has none
	// Origin is where in the store the value stands.
	// Empty where the key says it all.
	Origin Origin
	// Decoded is the result of Options.Decode, or nil. Connectors do not set it.
	Decoded any
	// Err says that the store has something under Key that is no value, such as
	// an entry that does not parse. Value is nil then, and the key is not gone.
	Err error
	// Absent says that the removal is an inference: the key was missing from a
	// listing or was evicted; nobody is known to have deleted it. A Source sets it for
	// keys that a listing lacks. A connector sets it for keys that the store lost by
	// itself. It means nothing unless Value and Err are nil.
	Absent bool
}

// A Batch is what a store changed at once.
type Batch struct {
	Events []Event
	Rev    int64 // the store's revision after this batch; 0 where it has none
	// Synced says that with this batch every pair that stood when the watch
	// began has been yielded.
	Synced bool
	// Problems are faults of the store's content that belong to no key, such as a
	// file that cannot be parsed. nil means unchanged, empty means none (any more).
	Problems []error
	// Identity names the data set that a listing read: an etcd cluster ID, a Redis
	// replication ID, the device and inode of a file. A store that was replaced by
	// another one has another identity. A store of several parts has one word for
	// each part, separated by spaces. One batch of each listing has it. Empty means
	// unknown. The connector guarantees only that equal data sets have equal words;
	// the agent remembers the words across restarts.
	Identity string
	// Former are words that Identity had before, in the store's own opinion: after a
	// failover, Redis names the replication ID that its data descends from.
	Former string
}

// A Connector watches one store.
type Connector interface {
	// Watch yields every pair under prefix in one or more Batches, which are the receiver's, the last of
	// them marked Synced, then each change as it comes, in order; what the store
	// changed at once is one Batch. It ends without error when ctx does, and with
	// one as soon as it can no longer promise that it has missed nothing. Called
	// again, it starts over.
	Watch(ctx context.Context, prefix string) iter.Seq2[Batch, error]
}

var (
	// ErrNotFound is what Get returns for a key that is not there.
	ErrNotFound = errors.New("no such key")
	// ErrReadOnly is what a store that people write by other means says to Put and Delete.
	ErrReadOnly = errors.New("store is read-only")
	// ErrTooLarge is what Apply says to changes that the store cannot make at once.
	ErrTooLarge = errors.New("too much for the store at once")
	// ErrSessionOver is what Apply says in a session that is lost or closed.
	ErrSessionOver = errors.New("session is over")
	// ErrEnded is the reason, in Health, when a watch ended without giving one.
	ErrEnded = errors.New("the watch ended without saying why")
	// ErrDrifted is the reason when a listing showed changes that the watch had lost.
	ErrDrifted = errors.New("the watch lost changes")
	// ErrOtherStore says that a listing read another data set than the one before.
	ErrOtherStore = errors.New("the store's identity changed")
	// ErrWentBack says that a listing read an older revision than was seen before.
	ErrWentBack = errors.New("the store's revision went back")
	// ErrLostKeys says that a store lost keys that nobody deleted.
	ErrLostKeys = errors.New("the store lost keys that nobody deleted")
)

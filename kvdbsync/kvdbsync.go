// Package kvdbsync is the contract between key-value stores and the rest of the agent. It
// also implements the part of watching a store that is the same for all kinds.
//
// A [Connector] knows one kind of store. It yields the content of the store and then its
// changes. It ends with an error as soon as it may have missed a change. Reasons are a
// compaction, a lost subscription, an index that went backwards, or a queue that
// overflowed.
//
// A [Source] is one configured connector. It mirrors the store, drops duplicates, deletes
// keys that vanished during a gap, and keeps only the newest change of a key until its
// consumer takes it. It retries with back-off and jitter, lists the store again from time
// to time, and reports its health.
//
// Order: changes of one key are delivered in the store's order. Changes of one store
// transaction stay together in one [Change].
//
//	State        begins when                                    the mirror
//	Connecting   Run begins                                     is empty
//	Syncing      the store answered; a listing is under way     is as before the listing
//	Synced       the listing is complete                        follows the store
//	Lost         the watch of a synced source has ended         keeps its content
//	Withheld     Options.Withhold has a reason                  follows the store, and nobody takes it
//
// Run's goroutine changes the state. The consumer may take changes in every state.
//
// Tests: the mirror has stories. The Source is tested in virtual time and by random
// histories with faults. Each connector is tested by the suite in kvdbsync/conformance.
package kvdbsync

import (
	"context"
	"errors"
	"iter"
)

// An Event is the content of one key of a store.
type Event struct {
	Key   string // whole key, as the store has it
	Value []byte // nil: the key is gone; owned by the receiver, never changed
	Rev   int64  // the store's revision of this change; 0 where it has none
	// Origin is the place of the value in the store. It is empty if the key is the place.
	Origin Origin
	// Decoded is the result of Options.Decode, or nil. Connectors do not set it.
	Decoded any
	// Err says that the content under Key is not a value, such as an entry that does not
	// parse. Value is nil then, and the key is not deleted.
	Err error
	// Absent says that the removal is an inference: the key was missing from a listing, or
	// it was evicted. A Source sets it for keys that a listing lacks. A connector sets it
	// for keys that the store lost by itself. It has no meaning unless Value and Err are
	// nil.
	Absent bool
}

// A Batch is a set of changes that a store made at once.
type Batch struct {
	Events []Event
	Rev    int64 // the store's revision after this batch; 0 where it has none
	// Synced says that every pair that existed when the watch began has been yielded, in
	// this batch or an earlier one.
	Synced bool
	// LostKeys says that the store lost keys by itself, such as by eviction, while nobody
	// watched it. The connector does not know which, so any key that the listing lacks may be
	// one of them. It has no meaning after Synced.
	LostKeys bool
	// Problems are errors in the store's content that belong to no key, such as a file
	// that cannot be parsed. nil means unchanged, empty means none.
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
	// Watch yields every pair under prefix in one or more Batches, which belong to the
	// receiver. The last of them is marked Synced. Then it yields each change in the
	// store's order, and changes that the store made at once are one Batch. It ends
	// without an error when ctx ends. It ends with an error as soon as it may have missed
	// a change. A second call starts over.
	Watch(ctx context.Context, prefix string) iter.Seq2[Batch, error]
}

var (
	// ErrNotFound is the error of Get for a missing key.
	ErrNotFound = errors.New("key not found")
	// ErrReadOnly is the error of Put and Delete in a store that people write by other
	// means.
	ErrReadOnly = errors.New("store is read-only")
	// ErrTooLarge is the error of Apply for changes that the store cannot make at once.
	ErrTooLarge = errors.New("too much for the store at once")
	// ErrTaken is in the reason of Options.Withhold while another agent has what is in the store.
	ErrTaken = errors.New("another agent owns the label")
	// ErrSessionOver is the error of Apply in a session that is lost or closed.
	ErrSessionOver = errors.New("session is over")
	// ErrEnded is the reason in Health after a watch that ended without an error.
	ErrEnded = errors.New("the watch ended without saying why")
	// ErrDrifted is the reason when a listing showed changes that the watch had lost.
	ErrDrifted = errors.New("the watch lost changes")
	// ErrOtherStore says that a listing read another data set than the one before.
	ErrOtherStore = errors.New("the store's identity changed")
	// ErrWentBack says that a listing read an older revision than was seen before.
	ErrWentBack = errors.New("the store's revision went back")
	// ErrLostKeys says that a store lost keys by itself, such as by eviction.
	ErrLostKeys = errors.New("the store lost keys that nobody deleted")
)

// Stream makes the result of Connector.Watch from a function. The function passes each
// Batch to emit, and returns when emit returns an error.
func Stream(ctx context.Context, watch func(emit func(Batch) error) error) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		reading := true
		err := watch(func(b Batch) error {
			if reading = reading && yield(b, nil); !reading {
				return errReaderStopped
			}
			return nil
		})
		if ctx.Err() == nil && reading { // a watch may return another error than emit's, which came at the same time
			yield(Batch{}, err)
		}
	}
}

// errReaderStopped carries the end of an iteration through a watch.
var errReaderStopped = errors.New("the reader has stopped")

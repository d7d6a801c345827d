package kvdbsync

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrTooMuch says that a store sent more than the Bounds allow.
var ErrTooMuch = errors.New("too large")

// Bounds limit the bytes that a store can make the agent hold. The zero value has the
// defaults. Value may not be larger than Page, nor Page larger than Listing.
type Bounds struct {
	// Value is for one value. A larger one is dropped while it is read, and its key has
	// an error instead. Defaults to 4 MiB.
	Value int64
	// Page is for one answer of a store. Connectors ask for fewer keys if an answer
	// exceeds it. Defaults to 64 MiB.
	Page int64
	// Listing is for all keys and values of a store. A store that exceeds it is not
	// followed. Defaults to 1 GiB.
	Listing int64
	// Room is for the keys of several stores. A key for which there is no place is ignored, and is a problem of its
	// store; one that the agent has stays. Defaults to no bound.
	Room *Room
}

// WithDefaults replaces zeros.
func (b Bounds) WithDefaults() Bounds {
	return Bounds{
		Value: cmp.Or(b.Value, 4<<20), Page: cmp.Or(b.Page, 64<<20), Listing: cmp.Or(b.Listing, 1<<30), Room: b.Room,
	}
}

// Validate returns an error for bounds that contradict each other.
func (b Bounds) Validate() error {
	b = b.WithDefaults()
	var errs []error
	for name, n := range map[string]int64{"max-value-size": b.Value, "max-page-size": b.Page, "max-listing-size": b.Listing} {
		if n < 1 {
			errs = append(errs, fmt.Errorf("%s is %d; it must be above zero", name, n))
		}
	}
	if b.Page < 2*b.Value {
		errs = append(errs, fmt.Errorf("max-page-size is %d; it must be at least twice max-value-size, %d", b.Page, b.Value))
	}
	if b.Listing < b.Page {
		errs = append(errs, fmt.Errorf("max-listing-size is %d; it must be at least max-page-size, %d", b.Listing, b.Page))
	}
	return errors.Join(errs...)
}

// CheckValue returns an error that wraps ErrTooMuch if a value has too many bytes.
func (b Bounds) CheckValue(size int64) error {
	if size <= b.Value {
		return nil
	}
	return fmt.Errorf("%w: the value has %d bytes; max-value-size allows %d", ErrTooMuch, size, b.Value)
}

// PageTooLarge is the error for an answer that exceeds Page.
func (b Bounds) PageTooLarge() error {
	return fmt.Errorf("%w: the answer has more bytes than max-page-size allows, %d", ErrTooMuch, b.Page)
}

// PairCost is the cost of a pair besides the bytes of its key and value. Without it, pairs
// without bytes would never reach a bound.
const PairCost = 64

// EmptyPageCost is what a page costs besides its pairs.
const EmptyPageCost = 1 << 10

// A Tally counts the bytes of one listing. It has no lock.
type Tally struct {
	bounds Bounds
	bytes  int64
	pairs  int64
}

// NewTally returns a Tally of nothing.
func NewTally(b Bounds) Tally { return Tally{bounds: b.WithDefaults()} }

// Page counts a page.
func (t *Tally) Page() error { return t.add(EmptyPageCost) }

// Pair counts the bytes of a key and its value. Once there are too many it returns an
// error that names the key and wraps ErrTooMuch.
func (t *Tally) Pair(key string, value int) error {
	t.pairs++
	if err := t.add(int64(len(key)) + int64(value) + PairCost); err != nil {
		return fmt.Errorf("%w, at key %.200q", err, key)
	}
	return nil
}

// ignored takes back the bytes of a pair that is not kept, but for some that remember it.
func (t *Tally) ignored(key string, value int) {
	t.bytes -= int64(len(key)) + int64(value) + PairCost - ignoredCost
}

// ignoredCost is the cost of a key that is ignored.
const ignoredCost = 32

// add counts bytes of the listing.
func (t *Tally) add(bytes int64) error {
	if t.bytes += bytes; t.bytes <= t.bounds.Listing {
		return nil
	}
	return fmt.Errorf("%w: the listing has more bytes than max-listing-size allows, %d, after %d keys",
		ErrTooMuch, t.bounds.Listing, t.pairs)
}

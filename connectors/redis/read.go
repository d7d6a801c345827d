package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/kvdbsync"
)

// pageSize is the number of keys that one step of a listing scans. It is small, so that
// other clients of the server do not wait long.
const pageSize = 1000

// scan passes on all keys that begin with prefix, page by page. It may pass on a key
// twice, and may omit keys that are created or deleted meanwhile. A scan that does not end
// within the bounds is an error.
func scan(ctx context.Context, client goredis.Cmdable, prefix string, bounds kvdbsync.Bounds, page func(keys []string) error) error {
	pattern, cursor := escape(prefix)+"*", uint64(0)
	tally := kvdbsync.NewTally(bounds)
	for {
		keys, next, err := client.Scan(ctx, cursor, pattern, pageSize).Result()
		if err != nil {
			return fmt.Errorf("listing %s in redis: %w", prefix, err)
		}
		if err := checkKeys(&tally, keys); err != nil {
			return fmt.Errorf("listing %s in redis: %w", prefix, err)
		}
		if len(keys) > 0 {
			if err := page(keys); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// checkKeys counts a page of names.
func checkKeys(tally *kvdbsync.Tally, keys []string) error {
	err := tally.Page()
	for _, key := range keys {
		if d, ok := droppedFrom(key); ok {
			return fmt.Errorf("%w: the name of a key has %d bytes", kvdbsync.ErrTooMuch, d.size)
		}
		err = cmp.Or(err, tally.Pair(key, 0))
	}
	return err
}

// escape makes a pattern that matches exactly this text. The characters are those of the
// glob-style patterns of SCAN and PSUBSCRIBE.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// A reader reads keys, each once.
type reader func(ctx context.Context, keys []string) (reading, error)

// A reading is the result of a reader.
type reading struct {
	events []kvdbsync.Event // of the keys that fit into a page, in no certain order
	left   []string         // the remaining keys
	// The events may not all be of one moment.
	several bool
}

// A page collects the events of some keys.
type page struct {
	bounds kvdbsync.Bounds
	events []kvdbsync.Event
	// Keys without room in the answer. The pager asks for them again, fewer at once.
	left  []string
	moved []string // keys to be read from another node, or in another way
}

// newPage returns a page with room for the events of the keys.
func newPage(bounds kvdbsync.Bounds, keys []string) *page {
	return &page{bounds: bounds, events: make([]kvdbsync.Event, 0, len(keys))}
}

// value records the value of a key.
func (p *page) value(key, text string) {
	size := int64(len(text))
	if d, ok := droppedFrom(text); ok {
		if d.noRoom {
			p.left = append(p.left, key)
			return
		}
		size = d.size
	}
	e := kvdbsync.Event{Key: key, Err: p.bounds.CheckValue(size)}
	if e.Err == nil {
		e.Value = bytesOf(text)
	}
	p.events = append(p.events, e)
}

// answer records the answer to a GET.
func (p *page) answer(key string, answer *goredis.StringCmd) error {
	text, err := answer.Result()
	switch {
	case err == nil:
		p.value(key, text)
	case errors.Is(err, goredis.Nil):
		p.events = append(p.events, kvdbsync.Event{Key: key})
	case goredis.HasErrorPrefix(err, "WRONGTYPE"):
		p.events = append(p.events, kvdbsync.Event{Key: key, Err: ErrNotString})
	default:
		return fmt.Errorf("reading %s in redis: %w", key, err)
	}
	return nil
}

// readMoved reads the keys in moved. read must follow redirects itself, as oneByOne does: readMoved
// asks only once. An absent key was absent at both moments, so it does not make them differ.
func (p *page) readMoved(ctx context.Context, read reader) (reading, error) {
	r := reading{events: p.events, left: p.left}
	if len(p.moved) == 0 {
		return r, nil
	}
	later, err := read(ctx, p.moved)
	r.several = len(later.left) > 0 || slices.ContainsFunc(later.events, func(e kvdbsync.Event) bool { return !isGone(e) })
	r.events, r.left = append(r.events, later.events...), append(r.left, later.left...)
	return r, err
}

// atOnce reads all keys at one moment, unless some are absent or no strings: it reads these twice.
func atOnce(client goredis.Cmdable, bounds kvdbsync.Bounds) reader {
	return func(ctx context.Context, keys []string) (reading, error) {
		values, err := client.MGet(ctx, keys...).Result()
		if err == nil && len(values) != len(keys) {
			err = fmt.Errorf("%w: %d values", ErrNotRedis, len(values))
		}
		if err != nil {
			return reading{}, fmt.Errorf("reading %d keys in redis: %w", len(keys), err)
		}
		p := newPage(bounds, keys)
		for i, v := range values {
			if text, ok := v.(string); ok {
				p.value(keys[i], text)
			} else {
				p.moved = append(p.moved, keys[i]) // it is absent, or not a string
			}
		}
		return p.readMoved(ctx, oneByOne(client, bounds))
	}
}

// oneByOne reads keys from any node of a Cluster in one pipeline, but not at one moment.
func oneByOne(client goredis.Cmdable, bounds kvdbsync.Bounds) reader {
	return func(ctx context.Context, keys []string) (reading, error) {
		p := newPage(bounds, keys)
		for i, answer := range get(ctx, client, keys) {
			if err := p.answer(keys[i], answer); err != nil {
				return reading{}, err
			}
		}
		return reading{p.events, p.left, len(keys) > 1}, nil
	}
}

// fromNode reads keys of a Cluster from the node that listed them. It reads keys that have
// moved since from any node.
func fromNode(n *goredis.Client, cluster goredis.Cmdable, bounds kvdbsync.Bounds) reader {
	return func(ctx context.Context, keys []string) (reading, error) {
		p := newPage(bounds, keys)
		for i, answer := range get(ctx, n, keys) {
			if err := answer.Err(); goredis.HasErrorPrefix(err, "MOVED") || goredis.HasErrorPrefix(err, "ASK") {
				p.moved = append(p.moved, keys[i])
				continue
			}
			if err := p.answer(keys[i], answer); err != nil {
				return reading{}, err
			}
		}
		return p.readMoved(ctx, oneByOne(cluster, bounds))
	}
}

// get reads each key with its own command. In a Cluster MGET would fail if its keys belong to
// several slots.
func get(ctx context.Context, client goredis.Cmdable, keys []string) []*goredis.StringCmd {
	pipe := client.Pipeline()
	answers := make([]*goredis.StringCmd, len(keys))
	for i, key := range keys {
		answers[i] = pipe.Get(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each answer has its own error
	return answers
}

// A pager reads any number of keys in several pages. It requests at most as many keys at
// once as fitted into the last page.
type pager struct {
	// The way to read: all keys at one moment, or one by one in a Cluster.
	read reader
	size *paging.Size // shared by all watches of the Connector
	most int          // maximum number of keys per request, in addition to that of size
	// The events of the last call of all may not be of one moment.
	several bool
}

// mostKeys bounds one request. A page is usually bounded by its bytes before that.
const mostKeys = 1 << 20

// newPager returns a pager that begins with as many keys as size allows. It reads fewer at
// once after a page that was too large.
func newPager(read reader, size *paging.Size) *pager {
	return &pager{read: read, size: size, most: mostKeys}
}

// each passes on the events page by page. A page that was not full doubles the number of keys
// of the next one. A single key that does not fit is ErrTooMuch, because asking again could
// not help.
func (p *pager) each(ctx context.Context, keys []string, take func([]kvdbsync.Event) error) error {
	for len(keys) > 0 {
		some := keys[:min(len(keys), p.most, p.size.Keys())]
		r, err := p.read(ctx, some)
		if err != nil {
			return p.size.Failed(err)
		}
		events, left := r.events, r.left
		p.size.Answered(events)
		p.several = p.several || r.several || len(left) > 0 || len(some) < len(keys)
		switch {
		case len(left) == 0:
			p.most = min(2*p.most, mostKeys)
		case len(some) == 1:
			return fmt.Errorf("%w: there is no room in an answer for the value of %s", kvdbsync.ErrTooMuch, some[0])
		case len(events) > 0:
			p.most = len(events)
		default:
			p.most = len(some) / 2
		}
		keys = append(left, keys[len(some):]...)
		if len(events) == 0 {
			continue
		}
		if err := take(events); err != nil {
			return err
		}
	}
	return nil
}

// all returns the events of all keys, sorted by key. Exceeding the bounds is an error.
func (p *pager) all(ctx context.Context, keys []string, bounds kvdbsync.Bounds) (all []kvdbsync.Event, err error) {
	p.several = false
	tally := kvdbsync.NewTally(bounds)
	err = p.each(ctx, keys, func(events []kvdbsync.Event) error {
		all = append(all, events...)
		for _, e := range events {
			if err := tally.Pair(e.Key, len(e.Value)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b kvdbsync.Event) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// whole returns a value that was read alone; the result is not nil.
func whole(key, text string, bounds kvdbsync.Bounds) ([]byte, error) {
	size := int64(len(text))
	if d, ok := droppedFrom(text); ok {
		size = d.size
	}
	if err := bounds.CheckValue(size); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return bytesOf(text), nil
}

// bytesOf returns the bytes of an answer, which nobody else has and nobody changes: a copy of
// each value would double the memory of a page. The result is not nil.
func bytesOf(text string) []byte {
	if text == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

// notNil distinguishes an empty value from an absent one; the library does not.
func notNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

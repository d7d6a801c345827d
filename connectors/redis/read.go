package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/kvdbsync"
)

// pageSize is how much of the keyspace one step of a listing looks at: little
// enough that others who use the server do not wait long.
const pageSize = 1000

// scan hands on all keys that begin with prefix, page by page, some of them
// perhaps twice, and maybe not those that come or go meanwhile.
func scan(ctx context.Context, client goredis.Cmdable, prefix string, page func(keys []string) error) error {
	pattern, cursor := escape(prefix)+"*", uint64(0)
	for {
		keys, next, err := client.Scan(ctx, cursor, pattern, pageSize).Result()
		if err != nil {
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

// escape makes a pattern that matches just this text.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// A reader reads keys: an event for each, in their order.
type reader func(ctx context.Context, keys []string) ([]kvdbsync.Event, error)

// atOnce reads all keys at one moment.
func atOnce(client goredis.Cmdable) reader {
	return func(ctx context.Context, keys []string) ([]kvdbsync.Event, error) {
		values, err := client.MGet(ctx, keys...).Result()
		if err != nil {
			return nil, fmt.Errorf("reading %d keys in redis: %w", len(keys), err)
		}
		events := make([]kvdbsync.Event, len(keys))
		var open []int // those that are gone, or no strings
		for i, v := range values {
			events[i].Key = keys[i]
			if text, ok := v.(string); ok {
				events[i].Value = []byte(text)
			} else {
				open = append(open, i)
			}
		}
		return events, settleOpen(ctx, client, events, open)
	}
}

// settleOpen reads some of the keys one by one.
func settleOpen(ctx context.Context, client goredis.Cmdable, events []kvdbsync.Event, open []int) error {
	if len(open) == 0 {
		return nil
	}
	keys := make([]string, len(open))
	for i, at := range open {
		keys[i] = events[at].Key
	}
	found, err := oneByOne(client)(ctx, keys)
	for i := range found {
		events[open[i]] = found[i]
	}
	return err
}

// oneByOne reads keys wherever in a Cluster they are, in one go, but not at one
// moment.
func oneByOne(client goredis.Cmdable) reader {
	return func(ctx context.Context, keys []string) ([]kvdbsync.Event, error) {
		events := make([]kvdbsync.Event, len(keys))
		for i, answer := range get(ctx, client, keys) {
			var err error
			if events[i], err = event(keys[i], answer); err != nil {
				return nil, err
			}
		}
		return events, nil
	}
}

// fromNode reads keys of a Cluster where they were seen, and wherever they are those
// that have moved since.
func fromNode(n *goredis.Client, cluster goredis.Cmdable) reader {
	return func(ctx context.Context, keys []string) ([]kvdbsync.Event, error) {
		events := make([]kvdbsync.Event, len(keys))
		var moved []int
		for i, answer := range get(ctx, n, keys) {
			if err := answer.Err(); goredis.HasErrorPrefix(err, "MOVED") || goredis.HasErrorPrefix(err, "ASK") {
				events[i].Key = keys[i]
				moved = append(moved, i)
				continue
			}
			var err error
			if events[i], err = event(keys[i], answer); err != nil {
				return nil, err
			}
		}
		return events, settleOpen(ctx, cluster, events, moved)
	}
}

// get reads each of the keys by a command of its own.
func get(ctx context.Context, client goredis.Cmdable, keys []string) []*goredis.StringCmd {
	pipe := client.Pipeline()
	answers := make([]*goredis.StringCmd, len(keys))
	for i, key := range keys {
		answers[i] = pipe.Get(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each answer has its own error
	return answers
}

func event(key string, answer *goredis.StringCmd) (kvdbsync.Event, error) {
	value, err := answer.Bytes()
	switch {
	case err == nil:
		return kvdbsync.Event{Key: key, Value: notNil(value)}, nil
	case errors.Is(err, goredis.Nil):
		return kvdbsync.Event{Key: key}, nil
	case goredis.HasErrorPrefix(err, "WRONGTYPE"):
		return kvdbsync.Event{Key: key, Err: ErrNotString}, nil
	}
	return kvdbsync.Event{}, fmt.Errorf("reading %s in redis: %w", key, err)
}

// notNil keeps an empty value apart from none: the library does not.
func notNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

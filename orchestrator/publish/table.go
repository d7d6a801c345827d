package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Table publishes texts other than statuses: one text for each of a set of keys.
// All texts are read again periodically. The fields of Options have the same meaning
// as for a Publisher.
type Table struct {
	Options
	Below string // prefix relative to Root: "vpp/status/v2/interface/"
	// Read returns the texts by key, relative to Root and Below. Keys that it omits
	// are deleted. If it fails, the store is not changed.
	Read func(context.Context) (map[string][]byte, error)
	// Changed triggers a read before Period has passed, but not sooner than
	// MinInterval after the last one. Defaults to never, and to one second. Period
	// defaults to 10 s.
	Changed     <-chan struct{}
	MinInterval time.Duration
}

// Run publishes until ctx ends. Then it removes the published texts and returns nil.
// It returns early if the store is read-only (kvdbsync.ErrReadOnly).
func (t Table) Run(ctx context.Context) error {
	t.Period = cmp.Or(t.Period, 10*time.Second)
	t.MinInterval = cmp.Or(t.MinInterval, time.Second)
	t.Options = t.withDefaults()
	retry := backoff.Backoff{Min: t.MinBackoff, Max: t.MaxBackoff}
	level := slog.LevelWarn // repeated failures are logged at debug level
	for {
		err := t.session(ctx, func() { retry.Reset(); level = slog.LevelWarn })
		if errors.Is(err, kvdbsync.ErrReadOnly) {
			t.Log.Warn("cannot publish into this store: it is read-only", "source", t.Name, "below", t.Root+t.Below, "err", err)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		wait := retry.Next()
		t.Log.Log(ctx, level, "cannot publish", "source", t.Name, "below", t.Root+t.Below, "err", err, "retry_in", wait)
		level = slog.LevelDebug
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// session publishes in one session until it is lost or ctx ends.
func (t Table) session(ctx context.Context, worked func()) error {
	s, end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	written, err := t.held(ctx, s)
	if err != nil {
		return err
	}
	for key := range written {
		written[key] = nil // the key may belong to an earlier session
	}
	for {
		if now, err := t.Read(ctx); err == nil {
			if err := t.write(ctx, s, written, now); err != nil {
				return err
			}
			worked()
		} else {
			t.Log.Debug("cannot read the texts to publish", "source", t.Name, "below", t.Root+t.Below, "err", err)
		}
		if err := t.waitForNext(ctx, s); err != nil {
			return err
		}
		select {
		case <-t.Listed:
			if written, err = t.held(ctx, s); err != nil {
				return err
			}
		default:
		}
	}
}

// held returns the texts that the store has.
func (t Table) held(ctx context.Context, s kvdbsync.Session) (map[string][]byte, error) {
	pairs, err := t.list(ctx, s, t.Root+t.Below)
	written := map[string][]byte{}
	for _, p := range pairs {
		written[strings.TrimPrefix(p.Key, t.Root+t.Below)] = p.Value
	}
	return written, err
}

// write changes the texts in the store from written to now, in batches of bounded
// rate.
func (t Table) write(ctx context.Context, s kvdbsync.Session, written, now map[string][]byte) error {
	for batch := range slices.Chunk(diff(written, now), kvdbsync.MaxApply) {
		pairs := slices.Clone(batch)
		for i := range pairs {
			pairs[i].Key = t.Root + t.Below + pairs[i].Key
		}
		taken, err := t.apply(ctx, s, pairs)
		if err != nil {
			return err
		}
		for _, p := range taken {
			key := strings.TrimPrefix(p.Key, t.Root+t.Below)
			if p.Value == nil {
				delete(written, key)
			} else {
				written[key] = p.Value
			}
		}
		if !sleep(ctx, s, t.BatchInterval) {
			return errLost
		}
	}
	return nil
}

// apply writes pairs and returns those that the store accepted. It halves a refused
// batch until it has found the refused keys, which must not block the others. They
// are retried at the next read.
func (t Table) apply(ctx context.Context, s kvdbsync.Session, pairs []kvdbsync.Pair) (taken []kvdbsync.Pair, err error) {
	limited, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	err = s.Apply(limited, pairs)
	switch {
	case err == nil:
		return pairs, nil
	case endsSession(ctx, s, err) || !t.storeResponds(ctx, s, t.Root+t.Below):
		return nil, fmt.Errorf("writing %d keys, %s the first: %w", len(pairs), pairs[0].Key, err)
	case len(pairs) == 1:
		t.Log.Debug("the store refuses a key", "source", t.Name, "key", pairs[0].Key, "err", err)
		return nil, nil
	}
	for _, half := range [][]kvdbsync.Pair{pairs[:len(pairs)/2], pairs[len(pairs)/2:]} {
		some, err := t.apply(ctx, s, half)
		if err != nil {
			return nil, err
		}
		taken = append(taken, some...)
	}
	return taken, nil
}

// diff returns the changes from one state to another, sorted by key.
func diff(from, to map[string][]byte) (out []kvdbsync.Pair) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if to[key] == nil {
			out = append(out, kvdbsync.Pair{Key: key})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if !bytes.Equal(from[key], to[key]) {
			out = append(out, kvdbsync.Pair{Key: key, Value: to[key]})
		}
	}
	return out
}

// waitForNext waits until the next read.
func (t Table) waitForNext(ctx context.Context, s kvdbsync.Session) error {
	if !sleep(ctx, s, t.MinInterval) {
		return errLost
	}
	timer := time.NewTimer(t.Period - t.MinInterval)
	defer timer.Stop()
	select {
	case <-t.Changed:
	case <-timer.C:
	case <-s.Lost():
		return errLost
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sleep waits. It returns false if the session is lost or ctx ends.
func sleep(ctx context.Context, s kvdbsync.Session, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.Lost():
	case <-ctx.Done():
	}
	return false
}

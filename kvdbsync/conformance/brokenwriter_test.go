package conformance_test

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// A brokenWriter is a Memory with one method, or some, gone wrong.
type brokenWriter struct {
	*conformance.Memory
	put         func(m *conformance.Memory, key string, value []byte) error
	list        func(m *conformance.Memory, prefix string) ([]kvdbsync.Pair, error)
	putIfAbsent func(ctx context.Context, m *conformance.Memory, key string, value []byte) (bool, error)
	replace     func(ctx context.Context, m *conformance.Memory, key string, old, value []byte) (bool, error)
	apply       func(m *conformance.Memory, changes []kvdbsync.Pair) error
}

func (w brokenWriter) Put(ctx context.Context, key string, value []byte) error {
	if w.put != nil {
		return w.put(w.Memory, key, value)
	}
	return w.Memory.Put(ctx, key, value)
}

func (w brokenWriter) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	if w.list != nil {
		return w.list(w.Memory, prefix)
	}
	return w.Memory.List(ctx, prefix)
}

func (w brokenWriter) PutIfAbsent(ctx context.Context, key string, value []byte) (bool, error) {
	if w.putIfAbsent != nil {
		return w.putIfAbsent(ctx, w.Memory, key, value)
	}
	return w.Memory.PutIfAbsent(ctx, key, value)
}

func (w brokenWriter) PutIfSame(ctx context.Context, key string, old, value []byte) (bool, error) {
	if w.replace != nil {
		return w.replace(ctx, w.Memory, key, old, value)
	}
	return w.Memory.PutIfSame(ctx, key, old, value)
}

func (w brokenWriter) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if w.apply != nil {
		return w.apply(w.Memory, changes)
	}
	return w.Memory.Apply(ctx, changes)
}

func writing(w brokenWriter) func(*conformance.Harness) {
	return func(h *conformance.Harness) {
		w.Memory = h.Writer.(*conformance.Memory)
		h.Writer = w
	}
}

func writerFaults() []fault {
	ctx := context.Background()
	return []fault{
		{"puts over what is there, if absent", "written_values_are_read_back", writing(brokenWriter{
			putIfAbsent: func(ctx context.Context, m *conformance.Memory, key string, value []byte) (bool, error) {
				_, err := m.Get(ctx, key)
				return err != nil, m.Put(ctx, key, value)
			}})},
		{"looks first and stores then", "one_of_many_concurrent_puts_if_absent_stores", writing(brokenWriter{
			putIfAbsent: func(ctx context.Context, m *conformance.Memory, key string, value []byte) (bool, error) {
				if _, err := m.Get(ctx, key); err == nil {
					return false, nil
				}
				<-time.After(time.Millisecond)
				return true, m.Put(ctx, key, value)
			}})},
		{"replaces what is there, whatever it is", "a_value_is_replaced_only_if_it_is_the_expected_one", writing(brokenWriter{
			replace: func(ctx context.Context, m *conformance.Memory, key string, _, value []byte) (bool, error) {
				return true, m.Put(ctx, key, value)
			}})},
		{"compares first and replaces then", "one_of_many_concurrent_replacements_stores", writing(brokenWriter{
			replace: func(ctx context.Context, m *conformance.Memory, key string, old, value []byte) (bool, error) {
				if now, err := m.Get(ctx, key); err != nil || !bytes.Equal(now, old) {
					return false, ctx.Err()
				}
				<-time.After(time.Millisecond)
				return true, m.Put(ctx, key, value)
			}})},
		{"lists what is beside", "listing_is_by_prefix_and_in_order", writing(brokenWriter{
			list: func(m *conformance.Memory, prefix string) ([]kvdbsync.Pair, error) {
				return m.List(ctx, prefix[:len(prefix)-1])
			}})},
		{"lists backwards", "listing_is_by_prefix_and_in_order", writing(brokenWriter{
			list: func(m *conformance.Memory, prefix string) ([]kvdbsync.Pair, error) {
				pairs, err := m.List(ctx, prefix)
				slices.Reverse(pairs)
				return pairs, err
			}})},
		{"trims what it writes", "values_are_written_byte_by_byte", writing(brokenWriter{
			put: func(m *conformance.Memory, key string, value []byte) error {
				return m.Put(ctx, key, bytes.TrimSpace(value))
			}})},
		{"deletes for an empty value", "values_are_written_byte_by_byte", writing(brokenWriter{
			apply: func(m *conformance.Memory, changes []kvdbsync.Pair) error {
				changes = slices.Clone(changes)
				for i, c := range changes {
					if len(c.Value) == 0 {
						changes[i].Value = nil
					}
				}
				return m.Apply(ctx, changes)
			}})},
		{"makes paths of keys", "any_character_may_be_in_a_key", writing(brokenWriter{
			put: func(m *conformance.Memory, key string, value []byte) error {
				return m.Put(ctx, string(bytes.TrimSuffix([]byte(key), []byte("/"))), value)
			}})},
		{"writes unseen", "written_values_arrive_at_a_watch", writing(brokenWriter{
			put: func(m *conformance.Memory, key string, value []byte) error {
				m.Lose(kvdbsync.Event{Key: key, Value: append([]byte{}, value...)})
				return nil
			}})},
		{"stops midway", "changes_are_made_all_or_none", writing(brokenWriter{apply: oneByOne})},
		{"takes the first of many", "too_many_changes_at_once_change_nothing", writing(brokenWriter{
			apply: func(m *conformance.Memory, changes []kvdbsync.Pair) error {
				if len(changes) <= kvdbsync.MaxApply {
					return m.Apply(ctx, changes)
				}
				if err := m.Apply(ctx, changes[:kvdbsync.MaxApply]); err != nil {
					return err
				}
				return kvdbsync.ErrTooLarge
			}})},
		{"takes too few", "changes_are_made_at_once", writing(brokenWriter{
			apply: func(m *conformance.Memory, changes []kvdbsync.Pair) error {
				if len(changes) > kvdbsync.MaxApply/2 {
					return kvdbsync.ErrTooLarge
				}
				return m.Apply(ctx, changes)
			}})},
		{"takes no notice of the context", "a_call_with_an_ended_context_writes_nothing", writing(brokenWriter{apply: oneByOne})},
	}
}

func oneByOne(m *conformance.Memory, changes []kvdbsync.Pair) error {
	for _, c := range changes {
		if err := m.Apply(context.Background(), []kvdbsync.Pair{c}); err != nil {
			return err
		}
	}
	return nil
}

package consul

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Client reads and writes Consul: a kvdbsync.Writer. Its methods are safe for concurrent
// use. It reconnects automatically.
type Client struct{ *client }

// Dial returns a Client; the caller must close it. The first request connects.
func Dial(cfg Config) (*Client, error) {
	c, err := newClient(cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Client{c}, nil
}

// Close closes the connections.
func (c *Client) Close() error {
	c.client.close()
	return nil
}

// Get implements kvdbsync.Store.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	pair, err := c.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s in consul: %w", key, err)
	}
	if pair == nil {
		return nil, fmt.Errorf("%s: %w", key, kvdbsync.ErrNotFound)
	}
	if err := c.cfg.Bounds.CheckValue(int64(len(pair.Value))); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return append([]byte{}, pair.Value...), nil // an empty value is not nil
}

// get returns the pair, or nil if there is none.
func (c *Client) get(ctx context.Context, key string) (*api.KVPair, error) {
	r, err := c.begun(ctx)
	if err != nil {
		return nil, err
	}
	defer r.end()
	get := c.getByPath
	if isCleaned(storeKey(key)) {
		get = c.getByTransaction
	}
	pair, err := get(storeKey(key), r)
	return pair, r.explain(err)
}

func (c *Client) getByPath(key string, r request) (*api.KVPair, error) {
	pair, _, err := c.api.KV().Get(key, r.read())
	return pair, err
}

// List implements kvdbsync.Store.
func (c *Client) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	if isCleaned(storeKey(prefix)) {
		return nil, fmt.Errorf("listing %s in consul: expected a prefix without //, /./ and /../, which consul removes", prefix)
	}
	var pairs []kvdbsync.Pair
	a, err := c.list(ctx, question{prefix: storeKey(prefix)})
	if err != nil {
		return nil, fmt.Errorf("listing %s in consul: %w", prefix, err)
	}
	defer a.close()
	err = a.each(func(p *pair) error {
		value, err := p.value(c.cfg.Bounds)
		if err != nil {
			return fmt.Errorf("/%s: %w", p.Key, err)
		}
		pairs = append(pairs, kvdbsync.Pair{Key: "/" + p.Key, Value: value})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s in consul: %w", prefix, err)
	}
	slices.SortFunc(pairs, func(a, b kvdbsync.Pair) int { return strings.Compare(a.Key, b.Key) })
	return pairs, nil
}

// Put implements kvdbsync.Store.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	_, err := c.put(ctx, api.KVSet, &api.KVPair{Key: storeKey(key), Value: value})
	return err
}

// PutIfAbsent implements kvdbsync.Writer.
func (c *Client) PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error) {
	return c.put(ctx, api.KVCAS, &api.KVPair{Key: storeKey(key), Value: value}) // with index 0: the key must not exist
}

// PutIfSame implements kvdbsync.Writer. Consul compares the index of the key's last change.
func (c *Client) PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	now, err := c.get(ctx, key)
	if err != nil {
		return false, fmt.Errorf("reading %s in consul: %w", key, err)
	}
	if now == nil || !bytes.Equal(now.Value, old) {
		return false, nil
	}
	return c.put(ctx, api.KVCAS, &api.KVPair{Key: now.Key, Value: value, ModifyIndex: now.ModifyIndex, Flags: now.Flags})
}

// put sends one value, by KVSet or KVCAS. It avoids a transaction, because Consul then accepts larger values.
func (c *Client) put(ctx context.Context, verb api.KVOp, p *api.KVPair) (stored bool, err error) {
	change := []kvdbsync.Pair{{Key: "/" + p.Key, Value: p.Value}}
	if isCleaned(p.Key) {
		op := &api.KVTxnOp{Verb: verb, Key: p.Key, Value: p.Value, Index: p.ModifyIndex, Flags: p.Flags}
		err := c.change(ctx, change, api.KVTxnOps{op})
		if errors.Is(err, errStale) {
			return false, nil
		}
		return err == nil, err
	}
	r, err := c.begun(ctx)
	if err != nil {
		return false, unwritten(change, err)
	}
	defer r.end()
	if verb == api.KVCAS {
		stored, _, err = c.api.KV().CAS(p, r.write())
	} else {
		_, err = c.api.KV().Put(p, r.write())
	}
	return stored, unwritten(change, r.explain(err))
}

// Delete implements kvdbsync.Store.
func (c *Client) Delete(ctx context.Context, key string) (existed bool, err error) {
	err = c.change(ctx, []kvdbsync.Pair{{Key: key}}, api.KVTxnOps{
		{Verb: api.KVGet, Key: storeKey(key)}, // fails if the key does not exist
		{Verb: api.KVDelete, Key: storeKey(key)},
	})
	if errors.Is(err, kvdbsync.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Apply implements kvdbsync.Writer, in one transaction. Consul accepts 64 changes and
// 512 kB at once, unless its servers have another txn_max_req_len.
func (c *Client) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	var ops api.KVTxnOps
	for _, change := range changes {
		op := &api.KVTxnOp{Verb: api.KVSet, Key: storeKey(change.Key), Value: change.Value}
		if change.Value == nil {
			op.Verb = api.KVDelete
		}
		ops = append(ops, op)
	}
	return c.change(ctx, changes, ops)
}

// change makes one transaction. changes describe it in errors.
func (c *Client) change(ctx context.Context, changes []kvdbsync.Pair, ops api.KVTxnOps) error {
	if len(changes) == 0 {
		return nil
	}
	r, err := c.begun(ctx)
	if err != nil {
		return unwritten(changes, err)
	}
	defer r.end()
	_, answer, _, err := c.api.KV().Txn(ops, r.read())
	if err != nil {
		return unwritten(changes, r.explain(err))
	}
	if answer == nil {
		return unwritten(changes, fmt.Errorf("%w: it says nothing about the changes", ErrNotConsul))
	}
	if len(answer.Errors) > 0 {
		refused := answer.Errors[0]
		if refused == nil || refused.OpIndex < 0 || refused.OpIndex >= len(ops) {
			return unwritten(changes, fmt.Errorf("%w: it refuses a change that nobody asked for", ErrNotConsul))
		}
		return fmt.Errorf("writing /%s in consul: %w", ops[refused.OpIndex].Key, reason(printable.Cut(refused.What, maxErrorBody)))
	}
	return nil
}

// reason returns the error for Consul's refusal of a whole transaction.
func reason(what string) error {
	for text, known := range map[string]error{
		"doesn't exist":        kvdbsync.ErrNotFound,
		"invalid session":      kvdbsync.ErrSessionOver,
		"lock is already held": errHeld,
		"index is stale":       errStale,
	} {
		if strings.Contains(what, text) {
			return fmt.Errorf("%w: %s", known, what)
		}
	}
	return errors.New(what)
}

// unwritten describes the failed changes and names the largest, the most likely cause.
func unwritten(changes []kvdbsync.Pair, err error) error {
	if err == nil {
		return nil
	}
	largest := slices.MaxFunc(changes, func(a, b kvdbsync.Pair) int { return cmp.Compare(len(a.Value), len(b.Value)) })
	what := largest.Key
	if n := len(changes); n > 1 {
		what = fmt.Sprintf("%d keys, of which %s is the largest,", n, largest.Key)
	}
	switch text := err.Error(); {
	case strings.Contains(text, "too many operations"):
		return fmt.Errorf("writing %s in consul: %w: %d changes: expected at most %d", what, kvdbsync.ErrTooLarge, len(changes), kvdbsync.MaxApply)
	case strings.Contains(text, "too large"), strings.Contains(text, "exceeds"):
		return fmt.Errorf("writing %s in consul: %w: its value has %d bytes: expected at most the servers' kv_max_value_size (txn_max_req_len for several), 512 kB by default: %w",
			what, kvdbsync.ErrTooLarge, len(largest.Value), err)
	}
	return fmt.Errorf("writing %s in consul: %w", what, err)
}

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// A Store writes values into a store, from which the agent of a label takes them. It needs no agent that
// runs, and knows nothing of what becomes of the values: a [Client] of the agent does. The store's own client is a
// kvdbsync.Writer, such as that of etcd.Dial in connectors/etcd, and the caller closes it.
type Store struct {
	writer kvdbsync.Writer
	root   string
	models *models.Registry
}

// NewStore returns a Store of the values of a label. Of the options only Models has an effect.
func NewStore(writer kvdbsync.Writer, label string, o Options) *Store {
	if o.Models == nil {
		o.Models = models.BuiltIn()
	}
	return &Store{writer, "/vnf-agent/" + label + "/", o.Models}
}

// Put writes values. Other values stay.
func (s *Store) Put(ctx context.Context, values ...proto.Message) error {
	return s.Commit(ctx, Put(values...))
}

// Delete removes values; only their keys count. One that is missing is no error.
func (s *Store) Delete(ctx context.Context, values ...proto.Message) error {
	return s.Commit(ctx, Delete(values...))
}

// Commit makes all changes at once, or none: the agent applies them in one transaction. Each value is checked as the
// agent checks it, as far as that needs no other value; the error is an [*Error] then, and nothing is written. A store
// may refuse more than kvdbsync.MaxApply changes with kvdbsync.ErrTooLarge.
func (s *Store) Commit(ctx context.Context, changes ...Change) error {
	pairs, err := s.pairs(changes)
	if err != nil {
		return err
	}
	var all []kvdbsync.Pair
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		all = append(all, kvdbsync.Pair{Key: s.root + key, Value: pairs[key]})
	}
	return s.writer.Apply(ctx, all)
}

// Replace writes values, and removes all others of the label that have a model. Values that the store has already are
// not written again. If more than kvdbsync.MaxApply keys differ, they change in several steps, the new ones first.
func (s *Store) Replace(ctx context.Context, values ...proto.Message) error {
	wanted, err := s.pairs([]Change{Put(values...)})
	if err != nil {
		return err
	}
	present, err := s.writer.List(ctx, s.root+"config/")
	if err != nil {
		return err
	}
	var gone []kvdbsync.Pair
	for _, p := range present {
		key := p.Key[len(s.root):]
		value, keep := wanted[key]
		switch {
		case keep && bytes.Equal(value, p.Value):
			delete(wanted, key)
		case keep:
		default:
			if _, _, ok := s.models.ByKey(key); ok {
				gone = append(gone, kvdbsync.Pair{Key: p.Key})
			}
		}
	}
	var all []kvdbsync.Pair
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		all = append(all, kvdbsync.Pair{Key: s.root + key, Value: wanted[key]})
	}
	for step := range slices.Chunk(append(all, gone...), kvdbsync.MaxApply) {
		if err := s.writer.Apply(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the values that the store has, sorted by key; given values select some by their keys. What is no valid value
// is in the error, beside the others.
func (s *Store) Get(ctx context.Context, values ...proto.Message) (out []Value, err error) {
	keys, err := keysOf(s.models, values)
	if err != nil {
		return nil, err
	}
	present, err := s.writer.List(ctx, s.root+"config/")
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range present {
		key := p.Key[len(s.root):]
		if len(keys) > 0 && !slices.Contains(keys, key) {
			continue
		}
		m, err := s.models.Decode(key, p.Value)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
			continue
		}
		out = append(out, Value{key, m})
	}
	return out, errors.Join(errs...)
}

// pairs returns the value of each key of the changes, as JSON; nil: it is to be removed.
func (s *Store) pairs(changes []Change) (map[string][]byte, error) {
	out, refused := map[string][]byte{}, &Error{}
	err := declared(s.models, changes, func(key string, m proto.Message) error {
		if m == nil {
			out[key] = nil
			return nil
		}
		if err := limits.Check(m); err != nil {
			f := Failure{Status: Status{Key: key, State: kvscheduler.ValueState_INVALID}}
			var texts []string
			for _, one := range models.FieldErrors(err) {
				f.Fields, texts = append(f.Fields, one.Field), append(texts, one.Error())
			}
			f.Reason = strings.Join(texts, "; ")
			refused.Failed = append(refused.Failed, f)
			return nil
		}
		model, _ := s.models.ForMessage(m)
		value, err := model.Marshal(m)
		out[key] = value
		return err
	})
	if err == nil && len(refused.Failed) > 0 {
		err = refused
	}
	return out, err
}

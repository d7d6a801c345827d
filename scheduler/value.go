package scheduler

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Value is a message under a key, validated, with its dependencies and
// derived values worked out. It is immutable. Only [Scheduler.Value] makes one.
type Value struct{ v *graph.Value }

// Key is the value's key.
func (v Value) Key() string { return v.v.Key }

// Message is what stands under the key. Nobody changes it.
func (v Value) Message() proto.Message { return v.v.Data.(proto.Message) }

var (
	// ErrUnimplemented is why a key is UNIMPLEMENTED: no descriptor has it.
	ErrUnimplemented = errors.New("no descriptor implements this key")
	// ErrInvalid is why a value is INVALID.
	ErrInvalid = errors.New("invalid value")
)

// Value prepares message for use under key. It fails with ErrUnimplemented or
// ErrInvalid, which wraps a *models.FieldError for each field that is wrong. It
// is pure, and may be called from any goroutine once all is registered.
func (s *Scheduler) Value(key string, message proto.Message) (Value, error) {
	d := s.registry.of(key)
	if d == nil {
		return Value{}, ErrUnimplemented
	}
	v := s.prepare(d, key, message)
	return Value{v}, v.Err
}

// prepare works out all that the graph has to know of a value of d (nil: a
// property).
func (s *Scheduler) prepare(d *descriptor, key string, m proto.Message) *graph.Value {
	v := &graph.Value{Key: key, Data: m}
	if d == nil {
		return v
	}
	v.Kind = d
	if err := d.accepts(m); err != nil {
		v.Err = fmt.Errorf("%w: %w", ErrInvalid, err)
		return v
	}
	if err := d.validate(key, m); err != nil {
		v.Err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	v.Deps = d.dependencies(key, m)
	for _, kv := range d.derived(key, m) {
		v.Derived = append(v.Derived, s.prepare(s.registry.of(kv.Key), kv.Key, kv.Value))
	}
	return v
}

package scheduler

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A Value is a validated message under a key, with its dependencies and derived values. It
// is immutable. Only [Scheduler.Value] and [Scheduler.Decode] make one. The zero Value has
// no key, and no transaction accepts it.
type Value struct {
	v  *graph.Value
	by *Scheduler
}

// Key returns the key of the value.
func (v Value) Key() string {
	if v.v == nil {
		return ""
	}
	return v.v.Key
}

// Message returns the declared message, before Normalize. Nobody may change it.
func (v Value) Message() proto.Message { return kind.Declared(v.v) }

// Warnings names the fields that the descriptor ignores; see Descriptor.Normalize.
func (v Value) Warnings() []string { return kind.Warnings(v.v) }

var (
	// ErrUnimplemented is the reason for UNIMPLEMENTED: no descriptor has the key. A verb
	// returns it if the system lacks a feature that the value needs. Then the verb is
	// called again only after the value changes or the connection is established again.
	ErrUnimplemented = kind.ErrUnimplemented
	// ErrInvalid is the reason for INVALID. A verb returns it, with a *models.FieldError, if only the
	// system can tell that the value is wrong. Then the verb is called again like one that returned
	// ErrUnimplemented.
	ErrInvalid = kind.ErrInvalid
)

// Value prepares message for use under key. It returns ErrUnimplemented or ErrInvalid.
// ErrInvalid wraps a *models.FieldError for each invalid field. Value is pure; any
// goroutine may call it after all descriptors are registered.
func (s *Scheduler) Value(key string, message proto.Message) (Value, error) {
	v, err := s.decoder.Value(key, message)
	return s.public(v), err
}

// Decode prepares the stored data of a key like Value; see [models.Registry.Decode]. If key and
// value disagree, the error also has the other mistakes of the value. Errors name fields as data does.
func (s *Scheduler) Decode(key string, data []byte) (Value, error) {
	v, err := s.decoder.Data(key, data)
	return s.public(v), err
}

// public returns v in its public form. Without a value it is the zero Value.
func (s *Scheduler) public(v *graph.Value) Value {
	if v == nil {
		return Value{}
	}
	return Value{v, s}
}

// Validate checks values and their derived values like Value. It also checks that no two
// of them claim one resource. It accesses no system. The error joins a KeyError for each
// wrong value. It is for tools that check a configuration before it is declared. A
// transaction does not need it: Commit refuses the same mistakes.
func (s *Scheduler) Validate(values ...KeyValue) error {
	all := make([]kind.Desired, len(values))
	for i, kv := range values {
		all[i] = kind.Desired(kv)
	}
	var errs []error
	for _, m := range s.registry.Mistakes(all) {
		errs = append(errs, KeyError{Key: m.Key, Base: m.Base, Err: m.Err})
	}
	return errors.Join(errs...)
}

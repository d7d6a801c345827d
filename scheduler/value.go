package scheduler

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
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
	ErrUnimplemented = errors.New("no descriptor implements this key")
	// ErrInvalid is the reason for INVALID.
	ErrInvalid = kind.ErrInvalid
)

// Value prepares message for use under key. It returns ErrUnimplemented or ErrInvalid.
// ErrInvalid wraps a *models.FieldError for each invalid field. Value is pure; any
// goroutine may call it after all descriptors are registered.
func (s *Scheduler) Value(key string, message proto.Message) (Value, error) {
	d := s.registry.Of(key)
	if d == nil {
		return Value{}, refuse(ErrUnimplemented, message)
	}
	v := s.registry.Declared(d, key, message)
	return Value{v, s}, refuse(v.Err, message)
}

// largeData is the size in bytes above which one value at a time is decoded. Decoding and
// validating takes ten times that memory for a moment, and sources do it at the same time.
const largeData = 512 << 10

// Decode prepares the stored data of a key like Value; see [models.Registry.Decode]. If key and
// value disagree, the error also has the other mistakes of the value. Errors name fields as data does.
func (s *Scheduler) Decode(key string, data []byte) (Value, error) {
	if len(data) > largeData {
		s.large <- struct{}{}
		defer func() { <-s.large }()
	}
	message, err := s.opts.Models.Decode(key, data)
	switch {
	case errors.Is(err, models.ErrNoModel):
		return Value{}, fmt.Errorf("%w: %w", ErrUnimplemented, err)
	case message == nil:
		return Value{}, err
	}
	v, invalid := s.Value(key, message)
	models.SpellFields(invalid, data) // nobody else has these errors yet
	switch {
	case err == nil:
		return v, invalid
	case invalid == nil:
		return Value{}, refuse(err, message)
	}
	return Value{}, refuse(models.Also(err, invalid), message)
}

// A refusal is the reason why a message cannot be applied, with the message: records show it.
type refusal struct {
	error
	message proto.Message
}

func (r *refusal) Unwrap() error { return r.error }

// refuse adds the message to an error; nil stays nil.
func refuse(err error, message proto.Message) error {
	if err == nil {
		return nil
	}
	return &refusal{err, message}
}

// refusedIn returns the message that err refuses, or nil.
func refusedIn(err error) proto.Message {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.message
	}
	return nil
}

// Validate checks values and their derived values like Value. It also checks that no two
// of them claim one resource. It accesses no system. The error joins a KeyError for each
// wrong value. It is for tools that check a configuration before it is declared. A
// transaction needs it not: Commit refuses the same mistakes.
func (s *Scheduler) Validate(values ...KeyValue) error {
	var errs []error
	all := graph.New()
	for _, kv := range values {
		d := s.registry.Of(kv.Key)
		if d == nil {
			errs = append(errs, KeyError{Key: kv.Key, Err: ErrUnimplemented})
			continue
		}
		v := s.registry.DeclaredWhole(d, kv.Key, kv.Value)
		errs = append(errs, faults(v, "")...)
		all.Want(v)
	}
	all.ResolveClaims()
	for n := range all.Touched() {
		if !n.LosesClaim() {
			continue
		}
		wrong := KeyError{Key: n.Key(), Err: errOf(n)}
		if n.Base() != nil {
			wrong.Base = n.Base().Key()
		}
		errs = append(errs, wrong)
	}
	return errors.Join(errs...)
}

// faults returns the mistakes of v and its derived values. An invalid base is no reason to
// hide the mistakes of its parts: whoever corrects a document wants to see all of them.
func faults(v *graph.Value, base string) (out []error) {
	if v.Err != nil {
		out = append(out, KeyError{Key: v.Key, Base: base, Err: v.Err})
	}
	for _, d := range v.Derived {
		out = append(out, faults(d, v.Key)...)
	}
	return out
}

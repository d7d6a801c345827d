package scheduler

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
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
func (v Value) Message() proto.Message { return declared(v.v) }

// Warnings names the fields that the descriptor ignores; see Descriptor.Normalize.
func (v Value) Warnings() []string { return warnings(v.v) }

var (
	// ErrUnimplemented is the reason for UNIMPLEMENTED: no descriptor has the key. A verb
	// returns it if the system lacks a feature that the value needs. Then the verb is
	// called again only after the value changes or the connection is established again.
	ErrUnimplemented = errors.New("no descriptor implements this key")
	// ErrInvalid is the reason for INVALID.
	ErrInvalid = errors.New("invalid value")
)

// invalidError is ErrInvalid with its reasons on one line.
type invalidError struct{ reasons error }

func (e *invalidError) Error() string {
	return ErrInvalid.Error() + ": " + strings.ReplaceAll(e.reasons.Error(), "\n", "; ")
}

func (e *invalidError) Unwrap() []error { return []error{ErrInvalid, e.reasons} }

// Value prepares message for use under key. It returns ErrUnimplemented or ErrInvalid.
// ErrInvalid wraps a *models.FieldError for each invalid field. Value is pure; any
// goroutine may call it after all descriptors are registered.
func (s *Scheduler) Value(key string, message proto.Message) (Value, error) {
	d := s.registry.of(key)
	if d == nil {
		return Value{}, ErrUnimplemented
	}
	v, known := s.examine(d, key, message, declaredValue)
	if known && v.Err == nil { // nothing is derived from an invalid value: it may have 100,000 bad parts
		s.derive(d, v, declaredValue)
	}
	return Value{v, s}, v.Err
}

// Decode prepares the stored data of a key like Value; see [models.Registry.Decode]. If key and
// value disagree, the error also has the other mistakes of the value.
func (s *Scheduler) Decode(key string, data []byte) (Value, error) {
	message, err := s.opts.Models.Decode(key, data)
	switch {
	case errors.Is(err, models.ErrNoModel):
		return Value{}, fmt.Errorf("%w: %w", ErrUnimplemented, err)
	case message == nil:
		return Value{}, err
	}
	v, invalid := s.Value(key, message)
	switch {
	case err == nil:
		return v, invalid
	case invalid == nil:
		return Value{}, err
	}
	return Value{}, models.Also(err, invalid)
}

// Validate checks values and their derived values like Value. It also checks that no two
// of them claim one resource. It accesses no system. The error joins a *ValueError for
// each wrong value.
func (s *Scheduler) Validate(values ...KeyValue) error {
	var errs []error
	all := graph.New()
	for _, kv := range values {
		d := s.registry.of(kv.Key)
		if d == nil {
			errs = append(errs, &ValueError{Key: kv.Key, Err: ErrUnimplemented})
			continue
		}
		v, known := s.examine(d, kv.Key, kv.Value, declaredValue)
		if known {
			s.derive(d, v, declaredValue)
		}
		errs = append(errs, faults(v, "")...)
		all.Want(v)
	}
	all.ResolveClaims()
	for n := range all.Touched() {
		if !n.LosesClaim() {
			continue
		}
		wrong := &ValueError{Key: n.Key(), Err: errOf(n)}
		if n.Base() != nil {
			wrong.Base = n.Base().Key()
		}
		errs = append(errs, wrong)
	}
	return errors.Join(errs...)
}

// A ValueError is the mistake of one value.
type ValueError struct {
	Key  string
	Base string // of a derived value: the key of its base
	Err  error
}

func (e *ValueError) Error() string { return e.Key + ": " + e.Err.Error() }

func (e *ValueError) Unwrap() error { return e.Err }

func faults(v *graph.Value, base string) (out []error) {
	if v.Err != nil {
		out = append(out, &ValueError{Key: v.Key, Base: base, Err: v.Err})
	}
	for _, d := range v.Derived {
		out = append(out, faults(d, v.Key)...)
	}
	return out
}

// prepare computes the graph's view of an actual value of d; nil means a property. It is
// complete even if the value is invalid: an actual value that lacks a dependency must be
// deleted, and so must its parts.
func (s *Scheduler) prepare(d *descriptor, key string, m proto.Message) *graph.Value {
	v, known := s.examine(d, key, m, actualValue)
	if known {
		s.derive(d, v, actualValue)
	}
	return v
}

// An origin says where a value comes from.
type origin uint8

const (
	// declaredValue: the value can be arbitrarily bad. No work is done for invalid parts.
	declaredValue origin = iota
	// actualValue: the value was retrieved, observed or saved.
	actualValue
)

// examine is prepare without derived values. It reports whether d can derive some.
func (s *Scheduler) examine(d *descriptor, key string, m proto.Message, from origin) (v *graph.Value, known bool) {
	v = &graph.Value{Key: key, Data: m}
	if d == nil {
		return v, false
	}
	defer refusePanic(v)
	v.Kind = d
	if err := d.accepts(m); err != nil {
		v.Err = &invalidError{err}
		return v, false
	}
	m, v.Declared = normalized(d, key, m)
	v.Data = m
	if err := d.validate(key, m); err != nil {
		v.Err = &invalidError{models.Bounded(err)}
		if from == declaredValue {
			return v, true
		}
	}
	if v.Err == nil {
		v.Claims = d.claims(key, m)
	}
	v.Deps = d.dependencies(key, m)
	if err := ambiguous(v.Deps); err != nil && v.Err == nil {
		v.Err = &invalidError{err}
	}
	return v, true
}

// maxInvalidParts is the maximum number of invalid values that may be derived from a
// declared one. If there are more, the declared value is invalid as a whole.
const maxInvalidParts = 1000

// derive adds the values that d derives from v.
func (s *Scheduler) derive(d *descriptor, v *graph.Value, from origin) {
	defer refusePanic(v)
	invalid := 0
	for _, kv := range d.derived(v.Key, v.Data.(proto.Message)) {
		of := s.registry.of(kv.Key)
		part, known := s.examine(of, kv.Key, kv.Value, from)
		if known {
			s.derive(of, part, from)
		}
		v.Derived = append(v.Derived, part)
		if part.Err == nil || from == actualValue {
			continue
		}
		invalid++
		if invalid > maxInvalidParts {
			if v.Err == nil {
				v.Err = &invalidError{fmt.Errorf("more than %d parts are invalid, such as %s: %w", maxInvalidParts, part.Key, part.Err)}
			}
			v.Derived = nil
			return
		}
	}
}

// refusePanic makes v invalid if a function of its descriptor panics.
func refusePanic(v *graph.Value) {
	if p := recover(); p != nil {
		v.Err = fmt.Errorf("%w: panic: %v\n%s", ErrInvalid, p, debug.Stack())
	}
}

// ambiguous returns an error for each dependency that does not say clearly how it is met.
func ambiguous(deps []Dependency) error {
	var errs []error
	for _, d := range deps {
		any := len(d.Prefixes) > 0 || d.Match != nil
		switch {
		case d.Key == "" && !any:
			errs = append(errs, fmt.Errorf("dependency %q has none of Key, Prefixes and Match", d.Label))
		case d.Key != "" && any:
			errs = append(errs, fmt.Errorf("dependency %q has Key %q and also Prefixes or Match", d.Label, d.Key))
		}
	}
	return errors.Join(errs...)
}

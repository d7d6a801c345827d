package kind

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Declared returns the graph's view of a value that somebody declares. An invalid value has
// no derived values: it may have 100,000 bad parts.
func (r *Registry) Declared(d *Descriptor, key string, m proto.Message) *graph.Value {
	v, known := r.examine(d, key, m, declaredValue)
	if known && v.Err() == nil {
		r.derive(d, v, declaredValue)
	}
	r.count(v)
	return v
}

// count keeps the memory of a declared value in it: here, many sources can work at the same
// time. The scheduler would hold up all transactions while it counts 100,000 rules.
func (r *Registry) count(v *graph.Value) {
	for _, d := range v.Derived() {
		r.count(d)
	}
	v.Size = int32(min(r.Sizes.Value(v), math.MaxInt32))
}

// DeclaredWhole is Declared with the derived values of an invalid value, for a report of all
// mistakes.
func (r *Registry) DeclaredWhole(d *Descriptor, key string, m proto.Message) *graph.Value {
	v, known := r.examine(d, key, m, declaredValue)
	if known {
		r.derive(d, v, declaredValue)
	}
	return v
}

// Actual returns the graph's view of an actual value of d; nil means a property. It is
// complete even if the value is invalid: an actual value that lacks a dependency must be
// deleted, and so must its parts.
func (r *Registry) Actual(d *Descriptor, key string, m proto.Message) *graph.Value {
	v, known := r.examine(d, key, m, actualValue)
	if known {
		r.derive(d, v, actualValue)
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

// examine returns a value without derived values. It reports whether d can derive some.
func (r *Registry) examine(d *Descriptor, key string, m proto.Message, from origin) (v *graph.Value, known bool) {
	v = &graph.Value{Key: key, Data: m}
	if d == nil {
		return v, false
	}
	refusePanic(v, func() { known = fill(v, d, from) })
	v.Deps = r.shared.Of(v.Deps)
	return v, known
}

// fill sets everything that d says of the value, and reports whether its derived values matter.
func fill(v *graph.Value, d *Descriptor, from origin) (known bool) {
	key, m := v.Key, Message(v)
	v.Kind = d
	if err := d.Accepts(m); err != nil {
		v.SetErr(Invalid(err))
		return false
	}
	m, declared := normalized(d, key, m)
	v.SetDeclared(declared)
	v.Data = m
	if err := d.Validate(key, m); err != nil {
		v.SetErr(Invalid(models.Bounded(err)))
		if from == declaredValue {
			return true
		}
	}
	// What stands holds what it claims, also if nobody may declare it like that.
	if (v.Err() == nil || from == actualValue) && d.Claims != nil {
		if claims := d.Claims(key, m); len(claims) > 0 {
			v.SetClaims(&claims)
		}
	}
	v.Deps = d.Dependencies(key, m)
	if err := ambiguous(v.Deps); err != nil && v.Err() == nil {
		v.SetErr(Invalid(err))
	}
	return true
}

// normalized returns the normalized form of m and the declared form. The latter is nil if
// m is normalized already.
func normalized(d *Descriptor, key string, m proto.Message) (proto.Message, *value.Declared) {
	if d.Normalize == nil {
		return m, nil
	}
	meaning, warnings := d.Normalize(key, m)
	if meaning == m && len(warnings) == 0 {
		return m, nil
	}
	return meaning, &value.Declared{Data: m, Warnings: warnings}
}

// maxInvalidParts is the maximum number of invalid values that may be derived from a
// declared one. If there are more, the declared value is invalid as a whole.
const maxInvalidParts = 1000

// derive adds the values that d derives from v.
func (r *Registry) derive(d *Descriptor, v *graph.Value, from origin) {
	if d.Derived == nil {
		return
	}
	refusePanic(v, func() { r.addDerived(d, v, from) })
}

// addDerived is derive, and may panic.
func (r *Registry) addDerived(d *Descriptor, v *graph.Value, from origin) {
	invalid := 0
	var parts []*graph.Value
	defer func() { v.SetDerived(parts) }()
	d.Derived(v.Key, Message(v), func(key string, m proto.Message) {
		if invalid > maxInvalidParts {
			return
		}
		of := r.Of(key)
		part, known := r.examine(of, key, m, from)
		if known {
			r.derive(of, part, from)
		}
		parts = append(parts, part)
		if part.Err() == nil || from == actualValue {
			return
		}
		invalid++
		if invalid > maxInvalidParts {
			if v.Err() == nil {
				v.SetErr(Invalid(fmt.Errorf("more than %d parts are invalid, such as %s: %w", maxInvalidParts, part.Key, part.Err())))
			}
			parts = nil
		}
	})
}

// refusePanic calls do, and makes v invalid if a function of its descriptor panics.
func refusePanic(v *graph.Value, do func()) {
	err := guard.Detailed(func() error { do(); return nil })
	if err != nil {
		v.SetErr(fmt.Errorf("%w: %w", ErrInvalid, err))
	}
}

// ambiguous returns an error for each dependency that does not say clearly how it is met.
func ambiguous(deps []value.Dep) error {
	var errs []error
	for i := range deps {
		d := &deps[i]
		switch a := d.Any; {
		case d.Key == "" && a == nil:
			errs = append(errs, fmt.Errorf("dependency %q has none of Key, Keys, Prefixes and Match", d.Label))
		case d.Key != "" && a != nil:
			errs = append(errs, fmt.Errorf("dependency %q has Key %q and also Keys, Prefixes or Match", d.Label, d.Key))
		case a != nil && len(a.Keys) > 0 && (len(a.Prefixes) > 0 || a.Match != nil):
			errs = append(errs, fmt.Errorf("dependency %q has Keys %q and also Prefixes or Match", d.Label, a.Keys))
		}
	}
	return errors.Join(errs...)
}

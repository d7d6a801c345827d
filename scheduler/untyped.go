package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// descriptor is a Descriptor without its types.
type descriptor = kind.Descriptor

// A Registrar takes descriptors: a *Scheduler, or the result of [Scheduler.OnConnection].
type Registrar interface {
	// target returns the scheduler, and the default of Descriptor.Connection.
	target() target
}

// A target registers descriptors that share a connection.
type target struct {
	s          *Scheduler
	connection string // empty: none
}

// OnConnection returns a Registrar for descriptors that share a connection: Descriptor.Connection
// defaults to its name. So a package names its connection once, and no descriptor of it gets a
// limit of its own by mistake.
//
// The connection need not be declared by [Scheduler.Connection]; if it is, that must come
// first, as for any descriptor. An empty name has no effect.
func (s *Scheduler) OnConnection(connection string) Registrar { return target{s, connection} }

func (s *Scheduler) target() target { return target{s: s} }
func (t target) target() target     { return t }

// Register adds d to a scheduler. It must be called before Run. The returned Index looks
// up the metadata of the actual values.
func Register[V proto.Message, M any](to Registrar, d Descriptor[V, M]) (*Index[M], error) {
	e, t := untyped(d), to.target()
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("descriptor %q: %w", d.Name, err)
	}
	if m := d.Model.Model; m != nil {
		if !t.s.opts.Models.Has(m) {
			return nil, fmt.Errorf("descriptor %q: model %s: %w; expected one of Options.Models", d.Name, m.Name(), models.ErrNoModel)
		}
		e.Prefix, e.Singleton, e.KeyOf = d.Model.Prefix(), d.Model.Singleton(), d.Model.Key
		if checks := t.s.opts.FieldChecks; checks != nil {
			e.Limit(checks(m))
		}
	}
	if err := t.s.add(e, cmp.Or(d.Connection, t.connection)); err != nil {
		return nil, fmt.Errorf("descriptor %q: %w", d.Name, err)
	}
	return &Index[M]{e.Index}, nil
}

// untyped removes the types of a Descriptor. Only its functions convert between types. The prefix is
// not yet that of the model, so that Check sees what was declared.
func untyped[V proto.Message, M any](d Descriptor[V, M]) *descriptor {
	e := kind.New(d.Name)
	e.Prefix, e.Match, e.After = d.Prefix, d.Match, d.RetrieveAfter
	e.Modelled, e.Absent, e.Origin, e.Properties = d.Model.Model != nil, d.Absent, d.Origin, d.Properties
	e.Known.Place = d.Place
	e.Learns = reflect.TypeFor[M]() != reflect.TypeFor[struct{}]()
	e.IsMeta, e.Accepts, e.Metadata = kind.IsMeta[M], kind.Accepts[V], kind.CodecOf[M]()
	untypedPure(d, e)
	untypedVerbs(d, e)
	return e
}

// untypedPure removes the types of the functions that access no system. A function that d
// lacks keeps the default of kind.New.
func untypedPure[V proto.Message, M any](d Descriptor[V, M], e *descriptor) {
	if d.Normalize != nil {
		e.Normalize = func(key string, v proto.Message) (proto.Message, []string) { return d.Normalize(key, v.(V)) }
	}
	kind.Override(&e.Validate, d.Validate)
	kind.Override(&e.Beside, d.MakeBeforeBreak)
	if d.Equivalent != nil {
		e.Equal = func(key string, old, new proto.Message) bool { return d.Equivalent(key, old.(V), new.(V)) }
	}
	if d.Recreate != nil && d.Update != nil {
		e.NeedsRecreate = func(key string, old, new proto.Message, m any) bool {
			return d.Recreate(key, old.(V), new.(V), kind.Meta[M](m))
		}
	}
	if d.Dependencies != nil {
		e.Dependencies = func(key string, v proto.Message) []value.Dep {
			deps := d.Dependencies(key, v.(V))
			if len(deps) == 0 {
				return nil
			}
			out := make([]value.Dep, len(deps))
			for i := range deps {
				out[i] = deps[i].graph()
			}
			return out
		}
	}
	if d.Claims != nil {
		e.Claims = func(key string, v proto.Message) []value.Claim { return d.Claims(key, v.(V)) }
	}
	if d.Identity != nil {
		e.IdentityOf = func(key string, v proto.Message) value.Identity {
			return value.Identity(d.Identity(key, v.(V)))
		}
	}
	e.RenamedTo, e.Referenced = d.Renamed, d.Referenced
	if d.Resolve != nil {
		e.Resolve = func(key string, v proto.Message) proto.Message { return d.Resolve(key, v.(V)) }
	}
	if d.Parts != nil {
		e.Parts = func(key string, v proto.Message) (out []proto.Message) {
			for _, part := range d.Parts(key, v.(V)) {
				out = append(out, part)
			}
			return out
		}
	}
	if d.Derived != nil {
		e.Derived = func(key string, v proto.Message, add func(string, proto.Message)) {
			for _, kv := range d.Derived(key, v.(V)) {
				add(kv.Key, kv.Value)
			}
		}
	}
}

// untypedVerbs removes the types of the verbs and of Retrieve. The assertions in it cannot
// fail: Accepts has checked the type of each value, and the metadata comes from the verbs
// themselves.
func untypedVerbs[V proto.Message, M any](d Descriptor[V, M], e *descriptor) {
	if d.Create != nil {
		e.Verbs.Create = func(ctx context.Context, key string, v proto.Message) (any, error) {
			m, err := d.Create(ctx, key, v.(V))
			return kind.Boxed(m), err
		}
	}
	if d.Delete != nil {
		e.Verbs.Delete = func(ctx context.Context, key string, v proto.Message, m any) error {
			return d.Delete(ctx, key, v.(V), kind.Meta[M](m))
		}
	}
	if d.CreateAll != nil {
		e.Verbs.CreateAll = func(ctx context.Context, tasks []*executor.Task) {
			values := make([]Desired[V], len(tasks))
			for i, t := range tasks {
				values[i] = Desired[V]{t.Op.Node.Key(), t.Op.New.Data.(V)}
			}
			created := d.CreateAll(ctx, values)
			for i, t := range tasks {
				t.Meta, t.Err = kind.Boxed(created[i].Meta), created[i].Err
			}
		}
	}
	if d.Update != nil {
		e.Verbs.Update = func(ctx context.Context, key string, old, new proto.Message, m any) (any, error) {
			nm, err := d.Update(ctx, key, old.(V), new.(V), kind.Meta[M](m))
			return kind.Boxed(nm), err
		}
	}
	if d.Retrieve != nil {
		e.Retrieve = func(ctx context.Context, ws []kind.Desired) iter.Seq2[kind.Found, error] {
			return untypedFound(func() Retrieved[V, M] { return d.Retrieve(ctx, typed[V](ws)) })
		}
	}
	if d.RetrieveSome != nil {
		e.RetrieveSome = func(ctx context.Context, keys []string, ws []kind.Desired) iter.Seq2[kind.Found, error] {
			return untypedFound(func() Retrieved[V, M] { return d.RetrieveSome(ctx, keys, typed[V](ws)) })
		}
	}
}

// typed returns desired values with their type.
func typed[V proto.Message](ws []kind.Desired) []Desired[V] {
	out := make([]Desired[V], len(ws))
	for i, w := range ws {
		out[i] = Desired[V]{w.Key, w.Value.(V)}
	}
	return out
}

// untypedFound returns the sequence of read without types. It calls read when the loop
// begins, so that nothing is read for a sequence that nobody uses.
func untypedFound[V proto.Message, M any](read func() Retrieved[V, M]) iter.Seq2[kind.Found, error] {
	return func(yield func(kind.Found, error) bool) {
		for f, err := range read() {
			one := kind.Found{Key: f.Key, Meta: kind.Boxed(f.Meta), Foreign: f.Foreign, OwnerUnknown: f.OwnerUnknown, Learned: f.Learned, Details: f.Details, Shown: f.Shown}
			if any(f.Value) != any(*new(V)) { // a nil of type V would not be nil any more
				one.Value = f.Value
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/index"
)

// descriptor is a Descriptor without its types. It is the graph's Kind of its values.
type descriptor struct {
	name      string
	prefix    string
	singleton bool
	modelled  bool
	match     func(key string) bool
	pool      *executor.Pool
	after     []string
	index     *index.Index
	reads     executor.Reads
	verbs     executor.Verbs
	link      *graph.Connection

	accepts      func(proto.Message) error
	isMeta       func(any) bool // reports whether it has the descriptor's metadata type
	learns       bool           // the descriptor has metadata
	keyOf        func(proto.Message) (string, error)
	normalize    func(key string, v proto.Message) (proto.Message, []string) // nil: values are normalized
	validate     func(key string, v proto.Message) error
	equivalent   func(key string, old, new proto.Message) bool
	recreate     func(key string, old, new proto.Message, meta any) bool
	dependencies func(key string, v proto.Message) []Dependency
	derived      func(key string, v proto.Message) []KeyValue
	claimed      func(key string, v proto.Message) []Claim       // nil: no claims
	resolve      func(key string, v proto.Message) proto.Message // nil: no references

	retrieve func(ctx context.Context, wanted []wanted) iter.Seq2[found, error]
	// retrieveSome reads back these keys only; nil: retrieve reads all.
	retrieveSome func(ctx context.Context, keys []string, wanted []wanted) iter.Seq2[found, error]
}

type wanted struct {
	key   string
	value proto.Message
}

type found struct {
	key     string
	value   proto.Message
	meta    any
	foreign bool
	unknown bool
}

// Passive reports whether values of d are only observed.
func (d *descriptor) Passive() bool { return d.verbs.Create == nil }

func (d *descriptor) Equivalent(key string, old, new any) bool {
	return d.equivalent(key, old.(proto.Message), new.(proto.Message))
}

func (d *descriptor) Recreate(key string, old, new, meta any) bool {
	return d.recreate(key, old.(proto.Message), new.(proto.Message), meta)
}

func (d *descriptor) Connection() *graph.Connection { return d.link }

// Evidence returns how a read-back decides whether a derived value of d exists.
func (d *descriptor) Evidence() graph.Evidence {
	switch {
	case d.retrieve != nil:
		return graph.ReadAlone
	case d.Passive():
		return graph.FollowsBase
	}
	return graph.ShownByBase
}

// A Registrar takes descriptors: a *Scheduler, or a [Group] of it.
type Registrar interface {
	// group returns the scheduler, and the default of Descriptor.Connection (empty: none).
	group() Group
}

// A Group registers descriptors that share a connection. Descriptor.Connection defaults to
// the name of the group. So a package names its connection once, and no descriptor of it
// gets a limit of its own by mistake. [Scheduler.Group] returns one.
type Group struct {
	s          *Scheduler
	connection string
}

// Group returns a Registrar for the descriptors of one connection. The name is that of
// Descriptor.Connection. It need not be declared by [Scheduler.Connection]; if it is, that
// must come first, as for any descriptor. An empty name has no effect.
func (s *Scheduler) Group(connection string) Group { return Group{s, connection} }

func (s *Scheduler) group() Group { return Group{s: s} }
func (g Group) group() Group      { return g }

// Register adds d to a scheduler. It must be called before Run. The returned Index looks
// up the metadata of the actual values.
func Register[V proto.Message, M any](to Registrar, d Descriptor[V, M]) (*Index[M], error) {
	if err := check(d); err != nil {
		return nil, fmt.Errorf("descriptor %q: %w", d.Name, err)
	}
	e, g := erase(d), to.group()
	if m := d.Model.Model; m != nil && !g.s.opts.Models.Has(m) {
		return nil, fmt.Errorf("descriptor %q: model %s: %w; expected one of Options.Models", d.Name, m.Name(), models.ErrNoModel)
	}
	if err := g.s.add(e, cmp.Or(d.Connection, g.connection)); err != nil {
		return nil, fmt.Errorf("descriptor %q: %w", d.Name, err)
	}
	return &Index[M]{e.index}, nil
}

func check[V proto.Message, M any](d Descriptor[V, M]) error {
	switch {
	case d.Name == "":
		return errors.New("name is required")
	case d.Model.Model == nil && d.Prefix == "":
		return errors.New("a Model or a Prefix is required")
	case d.Model.Model != nil && d.Prefix != "":
		return errors.New("has both a Model and a Prefix; expected one of them")
	case d.Prefix != "" && !strings.HasSuffix(d.Prefix, "/"):
		return fmt.Errorf("prefix %q does not end with a slash", d.Prefix)
	case (d.Create == nil) != (d.Delete == nil):
		return errors.New("has only one of Create and Delete; expected both or none")
	case d.Create == nil && d.CreateAll != nil:
		return errors.New("has CreateAll, but no Create")
	case d.Retrieve == nil && d.RetrieveSome != nil:
		return errors.New("has RetrieveSome, but no Retrieve")
	}
	return nil
}

// erase removes the types of a Descriptor. Only its functions convert between types.
func erase[V proto.Message, M any](d Descriptor[V, M]) *descriptor {
	e := &descriptor{
		name: d.Name, verbs: executor.Verbs{Descriptor: d.Name}, prefix: d.Prefix, match: d.Match, after: d.RetrieveAfter,
		index: index.New(),
		accepts: func(v proto.Message) error {
			if _, ok := v.(V); !ok {
				var want V
				return fmt.Errorf("value is a %s; expected a %s", nameOf(v), nameOf(want))
			}
			return nil
		},
		isMeta: func(m any) bool {
			_, is := m.(M)
			return is
		},
		learns:       reflect.TypeFor[M]() != reflect.TypeFor[struct{}](),
		keyOf:        func(proto.Message) (string, error) { return "", errors.New("no key given") },
		validate:     func(string, proto.Message) error { return nil },
		equivalent:   func(_ string, old, new proto.Message) bool { return proto.Equal(old, new) },
		recreate:     func(string, proto.Message, proto.Message, any) bool { return d.Update == nil },
		dependencies: func(string, proto.Message) []Dependency { return nil },
		derived:      func(string, proto.Message) []KeyValue { return nil },
	}
	if d.Model.Model != nil {
		e.prefix, e.singleton = d.Model.Prefix(), d.Model.Singleton()
		e.keyOf, e.modelled = d.Model.Key, true
	}
	eraseMeaning(d, e)
	eraseVerbs(d, e)
	return e
}

func eraseMeaning[V proto.Message, M any](d Descriptor[V, M], e *descriptor) {
	if d.Normalize != nil {
		e.normalize = func(key string, v proto.Message) (proto.Message, []string) { return d.Normalize(key, v.(V)) }
	}
	if d.Validate != nil {
		e.validate = func(key string, v proto.Message) error { return d.Validate(key, v.(V)) }
	}
	if d.Equivalent != nil {
		e.equivalent = func(key string, old, new proto.Message) bool { return d.Equivalent(key, old.(V), new.(V)) }
	}
	if d.Recreate != nil && d.Update != nil {
		e.recreate = func(key string, old, new proto.Message, m any) bool {
			return d.Recreate(key, old.(V), new.(V), meta[M](m))
		}
	}
	if d.Dependencies != nil {
		e.dependencies = func(key string, v proto.Message) []Dependency { return d.Dependencies(key, v.(V)) }
	}
	if d.Claims != nil {
		e.claimed = func(key string, v proto.Message) []Claim { return d.Claims(key, v.(V)) }
	}
	if d.Resolve != nil {
		e.resolve = func(key string, v proto.Message) proto.Message { return d.Resolve(key, v.(V)) }
	}
	if d.Derived != nil {
		e.derived = func(key string, v proto.Message) []KeyValue { return d.Derived(key, v.(V)) }
	}
}

func eraseVerbs[V proto.Message, M any](d Descriptor[V, M], e *descriptor) {
	if d.Create != nil {
		e.verbs.Create = func(ctx context.Context, key string, v proto.Message) (any, error) {
			m, err := d.Create(ctx, key, v.(V))
			return boxed(m), err
		}
		e.verbs.Delete = func(ctx context.Context, key string, v proto.Message, m any) error {
			return d.Delete(ctx, key, v.(V), meta[M](m))
		}
	}
	if d.CreateAll != nil {
		e.verbs.CreateAll = func(ctx context.Context, tasks []*executor.Task) {
			values := make([]Desired[V], len(tasks))
			for i, t := range tasks {
				values[i] = Desired[V]{t.Op.Node.Key(), t.Op.New.Data.(V)}
			}
			created := d.CreateAll(ctx, values)
			for i, t := range tasks {
				t.Meta, t.Err = boxed(created[i].Meta), created[i].Err
			}
		}
	}
	if d.Update != nil {
		e.verbs.Update = func(ctx context.Context, key string, old, new proto.Message, m any) (any, error) {
			nm, err := d.Update(ctx, key, old.(V), new.(V), meta[M](m))
			return boxed(nm), err
		}
	}
	if d.Retrieve != nil {
		e.retrieve = func(ctx context.Context, ws []wanted) iter.Seq2[found, error] {
			return eraseFound(func() iter.Seq2[Found[V, M], error] { return d.Retrieve(ctx, typed[V](ws)) })
		}
	}
	if d.RetrieveSome != nil {
		e.retrieveSome = func(ctx context.Context, keys []string, ws []wanted) iter.Seq2[found, error] {
			return eraseFound(func() iter.Seq2[Found[V, M], error] { return d.RetrieveSome(ctx, keys, typed[V](ws)) })
		}
	}
}

func typed[V proto.Message](ws []wanted) []Desired[V] {
	out := make([]Desired[V], len(ws))
	for i, w := range ws {
		out[i] = Desired[V]{w.key, w.value.(V)}
	}
	return out
}

func eraseFound[V proto.Message, M any](read func() iter.Seq2[Found[V, M], error]) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		for f, err := range read() {
			if !yield(found{f.Key, f.Value, boxed(f.Meta), f.Foreign, f.OwnerUnknown}, err) {
				return
			}
		}
	}
}

// boxed returns m in its stored form: nil for struct{}.
func boxed[M any](m M) any {
	if _, none := any(m).(struct{}); none {
		return nil
	}
	return m
}

// meta returns the metadata of type M, or the zero value if none is known.
func meta[M any](x any) M {
	m, _ := x.(M)
	return m
}

func nameOf(v proto.Message) string {
	if v == nil {
		return "nil"
	}
	return string(v.ProtoReflect().Descriptor().FullName())
}

// Package kind has descriptors without their types, finds the descriptor of a key, and
// computes the graph's view of a message.
//
// Package scheduler makes a [Descriptor] from each typed one; only the functions in it
// convert between types. All of this package is pure: after [Registry.Sort], any goroutine
// may call it, except for the fields of a Descriptor that the scheduler's goroutine owns.
package kind

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

// A Descriptor is a scheduler.Descriptor without its types. It is the graph's Kind of its
// values. A function without a comment about nil is never nil.
type Descriptor struct {
	Name      string
	Prefix    string
	Singleton bool // Prefix is its only key
	Modelled  bool
	Match     func(key string) bool // nil: all keys with Prefix
	After     []string              // descriptors that are read back first
	Index     *watch.Index

	// Owned by the goroutine of the scheduler.
	Reads executor.Reads
	// Looks are the calls of those who only want to see the values; see readback.Look.
	Looks      executor.Reads
	Verbs      executor.Verbs
	Known      graph.Knowledge
	Connection *Connection

	Accepts       func(proto.Message) error // an error if the message has another type
	IsMeta        func(any) bool            // reports whether it has the descriptor's metadata type
	Metadata      Codec                     // writes metadata, and reads it
	Learns        bool                      // the descriptor has metadata
	KeyOf         func(proto.Message) (string, error)
	Normalize     func(key string, v proto.Message) (proto.Message, []string) // nil: values are normalized
	Validate      func(key string, v proto.Message) error
	Equal         func(key string, old, new proto.Message) bool
	NeedsRecreate func(key string, old, new proto.Message, meta any) bool // nil: each change recreates if there is no Update
	Dependencies  func(key string, v proto.Message) []value.Dep
	Derived       func(key string, v proto.Message, add func(key string, part proto.Message)) // nil: no derived values
	Claims        func(key string, v proto.Message) []value.Claim                             // nil: no claims
	Resolve       func(key string, v proto.Message) proto.Message                             // nil: no references
	Parts         func(key string, v proto.Message) []proto.Message                           // nil: each value is one item
	IdentityOf    func(key string, v proto.Message) value.Identity                            // nil: no identities
	RenamedTo     func(from, to string)                                                       // nil: nobody wants to know
	Referenced    bool                                                                        // what others are depends on its metadata
	// Beside reports whether no other key names the same item, so that the item can exist beside
	// its successor; nil: all items leave before others come.
	Beside func(key string, v proto.Message) bool
	// Properties are the prefixes of the keys of properties of its values.
	Properties []string
	// Absent says why no value has the key; nil: it is declared by nobody.
	Absent func(key string) string
	// Origin returns the key of the value with which a key, or those with a prefix, come; "": of none. nil: of none.
	Origin func(keyOrPrefix string) string

	Retrieve func(ctx context.Context, desired []Desired) iter.Seq2[Found, error] // optional
	// RetrieveSome reads back these keys only; nil: Retrieve reads all.
	RetrieveSome func(ctx context.Context, keys []string, desired []Desired) iter.Seq2[Found, error]
}

// New returns a Descriptor without verbs, with the default of each function.
func New(name string) *Descriptor {
	return &Descriptor{
		Name: name, Index: watch.NewIndex(), Verbs: executor.Verbs{Descriptor: name},
		KeyOf:        func(proto.Message) (string, error) { return "", errors.New("no key given") },
		Validate:     func(string, proto.Message) error { return nil },
		Equal:        func(_ string, old, new proto.Message) bool { return proto.Equal(old, new) },
		Dependencies: func(string, proto.Message) []value.Dep { return nil },
	}
}

// A Desired is a desired value.
type Desired struct {
	Key   string
	Value proto.Message
}

// A Found is a retrieved value.
type Found struct {
	Key          string // empty: KeyOf makes it
	Value        proto.Message
	Meta         any
	Foreign      bool
	OwnerUnknown bool
	Learned      func() // called for those who do not only look; nil: nothing was learned
	Details      any    // for those who only look; nil: there are none
	Shown        bool   // no decision is about it
}

// Passive reports whether values of d are only observed.
func (d *Descriptor) Passive() bool { return d.Verbs.Create == nil }

// Equivalent implements graph.Kind.
func (d *Descriptor) Equivalent(key string, old, new any) bool {
	return d.Equal(key, old.(proto.Message), new.(proto.Message))
}

// Recreate implements graph.Kind.
func (d *Descriptor) Recreate(key string, old, new, meta any) bool {
	if d.NeedsRecreate == nil {
		return d.Verbs.Update == nil
	}
	return d.NeedsRecreate(key, old.(proto.Message), new.(proto.Message), meta)
}

// Order implements graph.Kind.
func (d *Descriptor) Order(key string, data any) value.Order {
	switch {
	case d.Beside == nil:
		return value.BreakFirst
	case d.Beside(key, data.(proto.Message)):
		return value.MakeFirst
	}
	return value.CreateLast
}

// Identity implements value.Identified.
func (d *Descriptor) Identity(key string, data any) value.Identity {
	if d.IdentityOf == nil {
		return value.Identity{}
	}
	return d.IdentityOf(key, data.(proto.Message))
}

// Renamed implements value.Identified.
func (d *Descriptor) Renamed(from, to string) {
	if d.RenamedTo != nil {
		d.RenamedTo(from, to)
	}
}

// Knowledge implements graph.Kind.
func (d *Descriptor) Knowledge() *graph.Knowledge { return &d.Known }

// Evidence returns how a read-back decides whether a derived value of d exists.
func (d *Descriptor) Evidence() value.Evidence {
	switch {
	case d.Retrieve != nil:
		return value.ReadAlone
	case d.Passive():
		return value.FollowsBase
	}
	return value.ShownByBase
}

// OnlyRemembered reports whether only the memory knows the actual values: they are not read
// back.
func (d *Descriptor) OnlyRemembered() bool { return d.Retrieve == nil }

// EndWithBoot reports whether values that only the memory knows are gone after another boot of the
// host. Those behind a connection are gone when that leads to another system.
func (d *Descriptor) EndWithBoot() bool { return !d.Connection.Losable }

// HasMeta reports whether verbs of d need what Create has learned.
func (d *Descriptor) HasMeta() bool { return d.Learns }

// SaveMeta returns metadata in the form that LoadMeta reads.
func (d *Descriptor) SaveMeta(meta any) ([]byte, error) { return d.Metadata.Save(meta) }

// LoadMeta reads what SaveMeta has returned.
func (d *Descriptor) LoadMeta(data []byte) (any, error) { return d.Metadata.Load(data) }

// ResolvedKeys returns the other keys under which v, or a part of it, may be retrieved.
func (d *Descriptor) ResolvedKeys(v *graph.Value) (keys []string) {
	m := Message(v)
	add := func(resolved proto.Message) {
		if key, err := d.KeyOf(resolved); err == nil && key != v.Key { // an item without a key cannot be retrieved
			keys = append(keys, key)
		}
	}
	resolved := m
	if d.Resolve != nil {
		resolved = d.Resolve(v.Key, m)
	}
	if resolved != m || v.Declared() != nil {
		add(resolved)
	}
	if d.Parts != nil {
		for _, part := range d.Parts(v.Key, m) {
			add(part)
		}
	}
	return keys
}

// Has reports whether key, which begins with the prefix of d, is a key of d.
func (d *Descriptor) Has(key string) bool {
	if d.Singleton {
		return key == d.Prefix
	}
	return len(key) > len(d.Prefix) && (d.Match == nil || d.Match(key))
}

// NameIn returns the part of key after the prefix.
func (d *Descriptor) NameIn(key string) string { return strings.TrimPrefix(key, d.Prefix) }

// FoundKey returns the key of a retrieved value, or why the value cannot be used.
func (d *Descriptor) FoundKey(f Found) (string, error) {
	if f.Value == nil || !f.Value.ProtoReflect().IsValid() {
		return "", errors.New("no value")
	}
	key := f.Key
	if key == "" {
		var err error
		key, err = d.KeyOf(f.Value)
		if err != nil {
			return "", err
		}
	}
	if !strings.HasPrefix(key, d.Prefix) || !d.Has(key) {
		return "", fmt.Errorf("key %q does not belong to descriptor %s", key, d.Name)
	}
	return key, nil
}

// Remember updates the metadata of n in the index.
func (d *Descriptor) Remember(n *graph.Node) {
	switch {
	case n.Actual() == nil:
		d.Index.Drop(d.NameIn(n.Key()))
	case n.Meta() != nil:
		d.Index.Set(d.NameIn(n.Key()), n.Meta())
	}
}

// Of returns the descriptor of a node, or nil.
func Of(n *graph.Node) *Descriptor {
	v := n.Actual()
	if v == nil {
		v = n.Desired()
	}
	return OfValue(v)
}

// OfOp returns the descriptor of the value that an operation changes, or nil.
func OfOp(op graph.Op) *Descriptor {
	if op.New != nil {
		return OfValue(op.New)
	}
	return OfValue(op.Old)
}

// OfValue returns the descriptor of a value, or nil.
func OfValue(v *graph.Value) *Descriptor {
	if v == nil {
		return nil
	}
	d, _ := v.Kind.(*Descriptor)
	return d
}

// Message returns the normalized message of v; nil: none.
func Message(v *graph.Value) proto.Message {
	if v == nil {
		return nil
	}
	m, _ := v.Data.(proto.Message)
	return m
}

// Declared returns the message of v before it was normalized.
func Declared(v *graph.Value) proto.Message {
	if v == nil || v.Declared() == nil {
		return Message(v)
	}
	return v.Declared().Data.(proto.Message)
}

// Warnings returns the warnings of the descriptor about v.
func Warnings(v *graph.Value) []string {
	if v == nil || v.Declared() == nil {
		return nil
	}
	return v.Declared().Warnings
}

// BaseOf returns the key of the declared value that a derived one belongs to; empty: n is declared.
func BaseOf(n *graph.Node) string {
	if n.Base() == nil {
		return ""
	}
	return n.Root().Key()
}

package scheduler

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Descriptor teaches the scheduler one sort of value. V is its message; M is
// the metadata that Create learns and the other verbs are given back, such as
// an interface index (struct{} where there is nothing to learn).
//
// The pure functions may be called from any goroutine, at any time. A verb is
// called on a goroutine of the scheduler's, never two at once for one key, and
// concurrently with verbs of values that do not depend on each other; its
// context ends when the scheduler stops or the verb takes too long. Messages
// are shared: nobody changes them.
type Descriptor[V proto.Message, M any] struct {
	Name string // unique: "linux-route"

	// Keys: those of Model, or for derived values and notifications, which no
	// model describes, those with Prefix that Match accepts (nil: all).
	Model  models.Of[V]
	Prefix string
	Match  func(key string) bool

	// Southbound names what the verbs talk to; verbs of one southbound share its
	// limit of concurrency. Defaults to Name.
	Connection string

	// Normalize returns the meaning of a declared value in the one spelling that Retrieve and all
	// other functions of the descriptor use, and a warning for each field that it ignores. The other
	// functions only get normalized values. It accepts invalid values, and never changes v: it
	// returns v itself if there is nothing to normalize. The key is that of the declared value.
	// Normalizing twice gives the same value. Optional.
	//
	// A warning begins with the path of the field; see models.Ignored. The scheduler logs warnings
	// once per change of the value, and shows them in Status.Details and in explanations.
	Normalize func(key string, v V) (normalized V, warnings []string)

	// Meaning: pure functions of the value. All are optional. Equivalent also compares what Retrieve
	// found (old) with what is wanted (new), and leaves out fields that only make derived values.
	Validate     func(key string, v V) error            // every invalid field: *models.FieldError, joined
	Equivalent   func(key string, old, new V) bool      // Defaults to proto.Equal
	Recreate     func(key string, old, new V, m M) bool // the change needs Delete and Create. Defaults to Update == nil
	Dependencies func(key string, v V) []Dependency     // all must stand before the value
	Derived      func(key string, v V) []KeyValue       // parts with a life of their own, and properties
	Claims       func(key string, v V) []Claim          // what no other value can have

	// Plain is v as Retrieve finds it when nothing is declared that says how it is spelled: what
	// v refers to in place of references, as they are now; v itself if it has none. A Memory
	// remembers both keys, as what a reference refers to may change. Optional.
	Resolve func(key string, v V) V

	// Verbs: what touches the system. A value of a descriptor without Create and
	// Delete is only noticed, by Retrieve and Observe.
	Create func(ctx context.Context, key string, v V) (M, error)
	// CreateAll, optional, is Create of several values, which do not depend on each other, in
	// one go: for what takes requests one behind the other more quickly than one by one. It
	// returns what became of each, in their order.
	CreateAll func(ctx context.Context, values []Desired[V]) []Created[M]
	Update    func(ctx context.Context, key string, old, new V, m M) (M, error)
	Delete    func(ctx context.Context, key string, v V, m M) error
	// Retrieve yields what really stands, of this sort; wanted is what should.
	// An error ends it, and what was known of this sort stays as it was. What stands
	// as wanted costs least with the key and the very message that wanted has. It shows all
	// fields from which Derived makes values that have verbs and no Retrieve of their own: those
	// that it does not show are taken for lost.
	Retrieve func(ctx context.Context, wanted []Desired[V]) iter.Seq2[Found[V, M], error]
	// RetrieveSome, optional, is Retrieve of these keys alone, where that costs less than to read
	// all; wanted is what should stand under them. It is called after a verb of theirs has failed.
	// Without it Retrieve is called with all that is wanted, and other keys are ignored.
	RetrieveSome func(ctx context.Context, keys []string, wanted []Desired[V]) iter.Seq2[Found[V, M], error]
	// RetrieveAfter names descriptors whose Retrieve must have run before.
	RetrieveAfter []string
}

// A KeyValue is a derived value. One whose key no descriptor has is a
// property: it stands when its base does, and nothing is called for it.
type KeyValue struct {
	Key   string
	Value proto.Message
}

// Wanted is a value that should stand.
type Desired[V proto.Message] struct {
	Key   string
	Value V
}

// Created is what became of one value.
type Created[M any] struct {
	Meta M
	Err  error
}

// Found is a value that Retrieve saw.
type Found[V proto.Message, M any] struct {
	Key          string // empty: what the model makes of Value
	Value        V
	Meta         M
	Foreign      bool // not ours: it counts as a dependency, but is never changed or removed
	OwnerUnknown bool // it does not say whose it is: a derived value is ours if its base is; else a Memory says it
}

// A Dependency is what must stand before a value can: the value under Key, or
// any with one of Prefixes whose key Match accepts (nil: all). Without Prefixes Match is
// asked about every key that there is, and about each that comes. A value is INVALID
// if a dependency of it has none of Key, Prefixes and Match, or Key and one of the others. Label is for
// people, who see it while the dependency is not met: "outgoing-interface-is-up".
type Dependency = graph.Dep

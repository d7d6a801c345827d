package scheduler

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Descriptor describes one kind of value. V is the type of its message. M is the type of
// the metadata that Create returns and the other verbs receive, such as an interface
// index. M is struct{} if there is none.
//
// Pure functions may be called from any goroutine at any time. A verb is called on a
// goroutine of the scheduler. Verbs of one key run one at a time; verbs of independent
// values run concurrently. The context of a verb ends when the scheduler stops or the verb
// takes too long. Messages are shared: no function may change them.
type Descriptor[V proto.Message, M any] struct {
	Name string // unique: "linux-route"

	// The keys are those of Model, or all keys with Prefix that Match accepts (nil: all).
	// Prefix is for derived values and notifications, which have no model.
	Model  models.Of[V]
	Prefix string
	Match  func(key string) bool

	// Connection is the name of the connection that the verbs use. Verbs of one connection
	// share a limit of concurrency. Defaults to that of OnConnection, else to Name.
	Connection string

	// Normalize returns the declared value in the same spelling that Retrieve uses, and a
	// warning for each field that is ignored. All other functions of the descriptor get
	// normalized values only. Normalize accepts invalid values and never changes v; it
	// returns v itself if there is nothing to normalize. The key is that of the declared
	// value. Normalizing twice gives the same value. Optional.
	//
	// A warning begins with the path of the field; see models.Ignored. The scheduler logs
	// warnings once per change of the value. Status.Details and explanations show them.
	Normalize func(key string, v V) (normalized V, warnings []string)

	// These pure functions of a value are optional. Equivalent also compares a retrieved
	// value (old) with the desired value (new). It ignores fields that only make derived
	// values. A key that several values derive belongs to the one that is applied, so their claims must say
	// that only one of them can be.
	Validate     func(key string, v V) error            // each invalid field: *models.FieldError, joined
	Equivalent   func(key string, old, new V) bool      // Defaults to proto.Equal
	Recreate     func(key string, old, new V, m M) bool // the change needs Delete and Create. Defaults to Update == nil
	Dependencies func(key string, v V) []Dependency     // all must exist before the value
	Derived      func(key string, v V) []KeyValue       // derived values and properties
	Claims       func(key string, v V) []Claim          // exclusive resources

	// Identity returns what v is about, if several keys can name it, such as an address in several
	// notations: a claim whose Resource is the key in canonical form. Of two values with one identity, the
	// second one is INVALID. When the first one leaves, the second one takes over: without an operation, if
	// both are equivalent. Optional.
	Identity func(key string, v V) Claim
	// Renamed says that what was created for one key belongs to another key from now on. Optional.
	Renamed func(from, to string)
	// Referenced says that values which depend on these ones by Key are something else with other metadata: their
	// identities, and what Match of their dependencies accepts.
	Referenced bool

	// Properties are the prefixes of the keys of properties that Derived returns. While values of the
	// descriptor are not known, such a property is not known to be missing. Optional: without them it is.
	Properties []string

	// Place says that the values contain those that depend on them, such as a network namespace: while it
	// is not known whether one exists, it is not known either whether there is something in it.
	Place bool

	// MakeBeforeBreak reports whether v is an item of its own in the system, beside those of all
	// other keys. Then v is deleted after everything else in the transaction was created and
	// updated, so that a successor under another key takes over without a gap. A value for which
	// it returns false may be the same item as another one: it is deleted first, and created
	// last. Values that have claims, or whose dependencies leave, are deleted first too. Derived
	// values follow their base. Defaults to none: deletions come first. See the order in the
	// package documentation. Optional.
	MakeBeforeBreak func(key string, v V) bool

	// Resolve returns v as Retrieve would report it if no value were desired: with
	// references replaced by their present targets. It returns v itself if v has no
	// references. A Memory stores the keys of both, because a reference may later point
	// elsewhere. Optional.
	Resolve func(key string, v V) V

	// Parts returns the values as which Retrieve reports what is there of v when the agent was killed in the middle of
	// a verb, if v is several items of the system, such as one for each IP version. A Memory stores their keys too:
	// otherwise nobody would own what is left. Optional.
	Parts func(key string, v V) []V

	// Absent says why no value has the key, and how one comes about: "no namespace has that name:
	// ip netns add red". It is for values that are only observed, since nobody can declare them.
	// Explanations show it. Optional.
	Absent func(key string) string
	// Origin returns the key of the value with which another key comes, such as that of a derived value, or those
	// that begin with a prefix, and "" for keys that come with no value of the descriptor. Explanations of a
	// missing key go on to that value: nobody can declare the key itself. Optional.
	Origin func(keyOrPrefix string) string

	// The verbs access the system. A value of a descriptor without Create and Delete is
	// only observed, by Retrieve and Observe.
	Create func(ctx context.Context, key string, v V) (M, error)
	// CreateAll creates several values that do not depend on each other. It is for systems
	// that process pipelined requests faster than single ones. It returns one result per
	// value, in the same order. Optional.
	CreateAll func(ctx context.Context, values []Desired[V]) []Created[M]
	Update    func(ctx context.Context, key string, old, new V, m M) (M, error)
	Delete    func(ctx context.Context, key string, v V, m M) error
	// Retrieve yields all actual values of this kind; wanted has the desired ones. An
	// error ends the iteration, and the known actual values stay unchanged. A value that
	// matches its desired value is cheapest if it is yielded with the key and the same
	// message from wanted. Retrieve reports all fields from which Derived makes values
	// that have verbs but no Retrieve. Such a value counts as lost if its field is
	// missing. It changes nothing, except in Found.Learned; see package reading.
	Retrieve func(ctx context.Context, wanted []Desired[V]) Retrieved[V, M]
	// RetrieveSome is Retrieve for these keys only, where that is cheaper than reading all
	// values; wanted has their desired values. It is called after one of their verbs has
	// failed. Without it, Retrieve is called with all desired values, and other keys are
	// ignored. Optional.
	RetrieveSome func(ctx context.Context, keys []string, wanted []Desired[V]) Retrieved[V, M]
	// RetrieveAfter names descriptors whose Retrieve must run first.
	RetrieveAfter []string
}

// A KeyValue is a derived value. If no descriptor has its key, it is a property: it exists
// while its base exists, and no verb is called for it.
type KeyValue struct {
	Key   string
	Value proto.Message
}

// A Desired is a desired value.
type Desired[V proto.Message] struct {
	Key   string
	Value V
}

// A Created is the result of creating one value.
type Created[M any] struct {
	Meta M
	Err  error
}

// A Found is a value that Retrieve reports.
type Found[V proto.Message, M any] struct {
	// Key may be empty: then the model makes it from Value.
	Key   string
	Value V
	// Meta is the metadata that Create would have returned. The verbs get it.
	Meta M
	// Foreign means that the value is not ours: it can meet dependencies, but is never changed
	// or removed.
	Foreign bool
	// OwnerUnknown means that the item has no mark of its owner. A derived value has the owner of
	// its base then; otherwise a Memory decides, and without one the value is not ours.
	OwnerUnknown bool
	// Learned is called when the scheduler takes what was read as what is there, before the next Found. It
	// is not called for those who only look, such as drift and dumps. So everything that Retrieve changes, in
	// the descriptor or in the system, belongs here: otherwise a look would change what the agent does
	// afterwards. A Found without a Value only has Learned. Optional.
	Learned func()
	// Details is what the system tells of the item besides its value. It is only for those who look: dumps
	// show it as encoding/json writes it, and the scheduler does not keep it. A pointer to what was read
	// costs nothing. Optional.
	Details any
	// Shown means that the item is only for those who look: no decision of the scheduler takes it into account, and
	// nothing is logged or watched. It is for what a system makes by itself and no value depends on. Its status is
	// OBTAINED, as of the last Retrieve, while no other value has the key.
	Shown bool
}

// Retrieved is the result of Retrieve: the actual values, or an error that ends them. A value
// beside an error is ignored. The loop over it may end early, so Retrieve releases its resources
// when yield returns false.
type Retrieved[V proto.Message, M any] = iter.Seq2[Found[V, M], error]

// A Dependency must be met before a value can be created. There are three forms:
//
//	Key                  the value under Key meets it
//	Keys                 the value under any of Keys meets it
//	Prefixes, Match      any value under one of Prefixes whose key Match accepts meets it (nil: all);
//	                     without Prefixes, Match is called for every existing key and for each new one
//
// A value is INVALID if one of its dependencies has none of these forms, or several.
type Dependency struct {
	// Label is shown to people while the dependency is unmet: "outgoing-interface-is-up".
	Label string
	Key   string
	Keys  []string
	// Prefixes need not end with a slash. Match gets whole keys. It must be pure: its answer for
	// a key never changes, except with a value of a kind that is Referenced, on which the value depends by Key.
	Prefixes []string
	Match    func(key string) bool
	// Remedy says what else a person may do while no value under Prefixes will do. Explanations show it. Optional.
	Remedy string
}

// MetBy reports whether the value under key meets d.
func (d Dependency) MetBy(key string) bool {
	g := d.graph()
	return g.MetBy(key)
}

// graph returns d in the form of the graph. Two forms in one dependency stay visible in it, so
// that the value is refused.
func (d Dependency) graph() value.Dep {
	out := value.Dep{Label: d.Label, Key: d.Key}
	if len(d.Keys) > 0 || len(d.Prefixes) > 0 || d.Match != nil {
		out.Any = &value.AnyOf{Keys: d.Keys, Prefixes: d.Prefixes, Match: d.Match, Remedy: d.Remedy}
	}
	return out
}

// publicDependencies returns dependencies of the graph in their public form.
func publicDependencies(deps []value.Dep) []Dependency {
	if len(deps) == 0 {
		return nil
	}
	out := make([]Dependency, len(deps))
	for i, d := range deps {
		out[i] = Dependency{Label: d.Label, Key: d.Key}
		if a := d.Any; a != nil {
			out[i].Keys, out[i].Prefixes, out[i].Match, out[i].Remedy = a.Keys, a.Prefixes, a.Match, a.Remedy
		}
	}
	return out
}

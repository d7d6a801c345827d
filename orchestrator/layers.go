package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// LayerOptions are the options of layers: the sources that callers of [Orchestrator.Declare]
// name. A layer exists while it has keys. It is complete from the start, and the Memory is
// its only store.
type LayerOptions struct {
	// Max is how many layers exist at most; a negative number allows none. Defaults to 32.
	Max int
	// Priority returns the priority of a layer, beside those of the sources. Defaults to 40
	// for each.
	Priority func(name string) int
	// Volatile reports that a layer ends with the process: the Memory does not keep it.
	// Defaults to keeping each.
	Volatile func(name string) bool
	// Reserved are names that no layer has, besides those of the sources.
	Reserved []string
}

// defaultLayers is the default number of layers.
const defaultLayers = 32

// complete sets the defaults.
func (o LayerOptions) complete() LayerOptions {
	o.Max = cmp.Or(o.Max, defaultLayers)
	if o.Priority == nil {
		o.Priority = func(string) int { return 40 }
	}
	if o.Volatile == nil {
		o.Volatile = func(string) bool { return false }
	}
	return o
}

// A Request changes the layer of one data source, as one transaction.
type Request struct {
	Layer  string // the name of the data source
	Values []Declared
	// Replace deletes all keys of the layer that are not in Values.
	Replace bool
	// Revert makes the request all or nothing: if a value is refused or a verb fails, the
	// layer and the network are as before, also values of an earlier run. If it is the first
	// request and there is no store, these are pruned after its success. Otherwise the request is best effort: refused
	// values are INVALID, failed ones are retried, and all others take effect.
	Revert bool
	// By is who asks, for people: the description of the transaction has it. Defaults to nobody.
	By string
	// If, when set, decides whether the request begins: its error refuses all of it. Has returns the
	// valid value of a key in the layer, or nil. Between If and the change nobody else changes the
	// layer. Run's goroutine calls it, so it must not wait.
	If func(has func(key string) proto.Message) error
}

// A Declared is the new content of one key. The last one of a key counts.
type Declared struct {
	Key string // relative to the prefix of the agent; not empty
	// Message is the value. The Orchestrator keeps it, so nobody may change it.
	Message proto.Message
	// JSON is the value instead of Message. If both are nil, the key is deleted.
	JSON []byte
	// Labels are kept with the value, for those who read it.
	Labels map[string]string
}

var (
	// ErrLayerName is the error of a request for a layer that cannot exist.
	ErrLayerName = errors.New("invalid name of a data source")
	// ErrTooManyLayers is the error of a request that would need one layer more than
	// LayerOptions.Max.
	ErrTooManyLayers = errors.New("too many data sources")
)

// Declare changes a layer, and returns the record of the transaction, which is nil if no
// effective value changed. The error is a *scheduler.TxnError with each refused value and
// failed verb; its errors wrap *models.FieldError. An empty key is a scheduler.ErrMisuse, and
// nothing is changed. When ctx ends, a request that has not
// begun is withdrawn; one that has begun goes on. Any goroutine may call it, but no verb.
//
// Values are validated on the goroutine of the caller. Requests are then processed one
// after the other.
func (o *Orchestrator) Declare(ctx context.Context, q Request) (*scheduler.Record, error) {
	if err := o.checkLayer(q.Layer); err != nil {
		return nil, err
	}
	saved := o.memory != nil && !o.layers.Volatile(q.Layer)
	return o.declared.do(ctx, &request{
		layer: q.Layer, by: q.By, events: o.prepare(q, saved), replace: q.Replace, revert: q.Revert, allowed: q.If, done: make(chan struct{}),
	})
}

// layerName is the form of a name: it is part of keys in the Memory and of log lines.
var layerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// checkLayer checks the name that a program has chosen for its layer.
func (o *Orchestrator) checkLayer(name string) error {
	taken := slices.Contains(o.layers.Reserved, name) ||
		slices.ContainsFunc(*o.shown.Load(), func(l *source) bool { return !l.layer && l.Name == name })
	switch {
	case !layerName.MatchString(name):
		return fmt.Errorf("%w: %.80q: expected up to 63 letters, digits, dots, dashes and underscores", ErrLayerName, name)
	case taken:
		return fmt.Errorf("%w: %q is the name of a store", ErrLayerName, name)
	}
	return nil
}

// prepare validates the values of a request, on several CPUs if there are many. saved says that the
// Memory will need their JSON.
func (o *Orchestrator) prepare(q Request, saved bool) []kvdbsync.Event {
	const atLeast = 64 // values per goroutine
	values := q.Values
	out := make([]kvdbsync.Event, len(values))
	workers := max(1, min(runtime.GOMAXPROCS(0), len(values)/atLeast))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(values); i += workers {
				out[i] = o.prepareOne(&values[i], q.By, saved)
			}
		})
	}
	wg.Wait()
	return out
}

// prepareOne returns the event of a value, decoded. The bytes of a message are made only
// for the Memory; otherwise they are empty.
func (o *Orchestrator) prepareOne(d *Declared, by string, saved bool) kvdbsync.Event {
	e := kvdbsync.Event{Key: d.Key, Value: d.JSON}
	var got decoded
	switch {
	case d.Message == nil:
		got = o.decode(e)
	case saved:
		e.Value, got = o.decodeSaved(d)
	default:
		e.Value, got = []byte{}, o.decodeMessage(d)
	}
	if e.Value != nil {
		got.labels, got.by = d.Labels, by
	}
	e.Decoded = got
	return e
}

// decodeSaved is decodeMessage, and returns the JSON for the Memory. JSON may be several times as
// large as its message. A value whose JSON the next start would refuse for its size is refused at once.
func (o *Orchestrator) decodeSaved(d *Declared) (text []byte, out decoded) {
	out = o.decodeMessage(d)
	text, err := models.JSON(d.Message)
	switch {
	case err != nil:
		text, err = []byte{}, fmt.Errorf("%w: %w", scheduler.ErrInvalid, err)
	case len(text) > models.MaxSize:
		err = fmt.Errorf("%w: %d bytes as JSON: expected at most %d", models.ErrTooLarge, len(text), models.MaxSize)
	}
	if err != nil && out.err == nil {
		out = decoded{err: err}
	}
	return text, out
}

// decodeMessage is decode for a value with a type. The message is checked as its JSON
// would be.
func (o *Orchestrator) decodeMessage(d *Declared) (out decoded) {
	err := guard.Run(func() error {
		out = o.checkMessage(d.Key, d.Message)
		return nil
	})
	if err != nil {
		return refusePanic(o.log, d.Key, err)
	}
	return out
}

// checkMessage checks a message that a program has sent, as decoding checks the JSON of a
// store.
func (o *Orchestrator) checkMessage(key string, m proto.Message) decoded {
	if size := proto.Size(m); size > models.MaxSize {
		return decoded{err: fmt.Errorf("%w: %d bytes: expected at most %d", models.ErrTooLarge, size, models.MaxSize)}
	}
	if err := models.Check(m); err != nil {
		return decoded{err: err}
	}
	if model, ok := o.sched.Models().ForMessage(m); ok {
		made, err := model.Key(m)
		if err == nil && made != key {
			err = fmt.Errorf("%w: the key is %q, but the value makes %q", models.ErrKeyMismatch, key, made)
		}
		if err != nil {
			return decoded{err: err}
		}
	}
	v, err := o.sched.Value(key, m)
	if err != nil {
		return decoded{err: err}
	}
	return decoded{value: &v}
}

// serveLayer processes the next request for a layer. An all-or-nothing request waits until
// the first transaction has ended: that one has the values of others too.
func (o *Orchestrator) serveLayer(ctx context.Context) {
	r := o.declared.next(o.phase > starting)
	if r == nil {
		return
	}
	if r.forget != "" {
		o.serveForget(ctx, r)
		return
	}
	l := o.layer(r.layer)
	if l == nil {
		r.finish(nil, o.tooManyLayers())
		return
	}
	if r.allowed != nil {
		if err := r.allowed(l.has); err != nil {
			o.dropEmpty(l)
			r.finish(nil, err)
			return
		}
	}
	o.serve(ctx, l, r)
}

// has returns the valid value of a key in the source, or nil.
func (l *source) has(key string) proto.Message {
	if v := l.entries.Get(key).valid(); v != nil {
		return v.Message()
	}
	return nil
}

// layer returns a layer, which is created if it does not exist; nil: there are too many.
func (o *Orchestrator) layer(name string) *source {
	for _, l := range o.sources {
		if l.layer && l.Name == name {
			return l
		}
	}
	if o.layerCount() >= o.layers.Max {
		return nil
	}
	l := &source{
		Source: Source{Name: name, Priority: o.layers.Priority(name)}, entries: newEntries(),
		synced: true, layer: true, volatile: o.layers.Volatile(name),
	}
	o.rank(append(slices.Clone(o.sources), l))
	l.publish()
	return l
}

// tooManyLayers is ErrTooManyLayers with the numbers.
func (o *Orchestrator) tooManyLayers() error {
	return fmt.Errorf("%w: %d have declared values; expected at most %d", ErrTooManyLayers, o.layerCount(), o.layers.Max)
}

// layerCount returns the number of layers, which is bounded.
func (o *Orchestrator) layerCount() (n int) {
	for _, l := range o.sources {
		if l.layer {
			n++
		}
	}
	return n
}

// dropEmpty removes a layer or an unconfigured source without keys. It is called before the answer, so that a
// caller which has the answer no longer sees it. A layer stays while the Memory lacks changes of it.
func (o *Orchestrator) dropEmpty(l *source) {
	if (l.layer || l.unconfigured) && l.entries.Len() == 0 && len(l.unrecorded) == 0 {
		o.rank(slices.DeleteFunc(slices.Clone(o.sources), func(other *source) bool { return other == l }))
	}
}

// rank makes sources the sources, sorted by priority. It owns the slice, which never
// changes: Health reads it on other goroutines.
func (o *Orchestrator) rank(sources []*source) {
	slices.SortFunc(sources, func(a, b *source) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	for i, l := range sources {
		l.rank = i
	}
	o.sources = sources
	o.shown.Store(&sources)
}

// layerMark is the start of the name of a layer in the Memory. So a layer and a store with
// one name cannot be confused.
const layerMark = "layer/"

// savedLayer reports that a name in the Memory is that of a layer which is still kept.
func (o *Orchestrator) savedLayer(name string) (layer string, kept bool) {
	layer, ok := strings.CutPrefix(name, layerMark)
	return layer, ok && o.layers.Max > 0 && o.checkLayer(layer) == nil && !o.layers.Volatile(layer)
}

// An Effective is the value of a key that takes effect.
type Effective struct {
	Key, Source string
	Message     proto.Message // as declared; nobody may change it
	Labels      map[string]string
}

// Effective returns the values that take effect, sorted by key. keys selects some of them;
// none selects all. Run's goroutine answers between transactions.
func (o *Orchestrator) Effective(ctx context.Context, keys ...string) ([]Effective, error) {
	if keys == nil {
		all, err := ask(ctx, o, o.allEffective)
		slices.SortFunc(all, func(a, b Effective) int { return strings.Compare(a.Key, b.Key) }) // here: it takes long
		return all, err
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	return ask(ctx, o, func() (out []Effective) {
		for _, key := range keys {
			for _, l := range o.sources {
				if e := l.entries.Get(key); e.valid() != nil {
					out = append(out, e.effective(l.Name))
					break
				}
			}
		}
		return out
	})
}

// allEffective returns the effective values of all keys, in no order. A value counts at
// the first source that has a valid one.
func (o *Orchestrator) allEffective() (out []Effective) {
	for rank, l := range o.sources {
		out = slices.Grow(out, l.entries.Len())
		for e := range l.entries.All() {
			first := slices.IndexFunc(o.stack(e.key()), func(e *entry) bool { return e.valid() != nil })
			if first == rank {
				out = append(out, e.effective(l.Name))
			}
		}
	}
	return out
}

// effective returns the entry as programs see it.
func (e *entry) effective(source string) Effective {
	return Effective{Key: e.key(), Source: source, Message: e.last.Message(), Labels: e.labels()}
}

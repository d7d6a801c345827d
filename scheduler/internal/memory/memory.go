// Package memory remembers across restarts which values are ours.
//
// A [Ledger] writes the key of a value to a [Store] before Create begins, and removes it after
// Delete has succeeded. So the store always has all values that may be ours, and after a kill
// perhaps a key without an item. Such a key is uncertain until its descriptor is read back.
//
// The stored data depends on the descriptor:
//
//	it can be read back   the resolved keys that differ from the key: Retrieve may report the
//	                      value, or a part of it, under them when no value is desired
//	it cannot             the whole value, its metadata, and the boot of the host. A mark in
//	                      front of it means that an operation is in progress, so that the
//	                      actual state is uncertain. After another boot, the value is gone.
package memory

import (
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/internal/keyset"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Store keeps data across restarts. See scheduler.Memory.
type Store interface {
	Load() iter.Seq2[string, []byte]
	Save(changes iter.Seq2[string, []byte]) error
}

// A Kind is the ledger's view of a descriptor.
type Kind interface {
	Passive() bool        // its values are only observed
	OnlyRemembered() bool // its actual values are known from the store alone
	EndWithBoot() bool    // those are gone after another boot of the host
	HasMeta() bool        // its verbs need metadata
	// ResolvedKeys returns the key of v without references, and those of its parts, as far as they differ from its key.
	ResolvedKeys(v *graph.Value) []string
	SaveMeta(meta any) ([]byte, error)
	LoadMeta(data []byte) (any, error)
}

const (
	// uncertain begins no packed message, because no field has the number 0. The mark
	// comes in front of a whole value in the store.
	uncertain    = 0
	keySeparator = "\x00"
)

// A record is a change of the store. data nil: the key is removed.
type record struct {
	key   string
	data  []byte
	whole bool // data is a whole value
}

// each yields records in the form of Store.Save.
func each(records []record) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, r := range records {
			if !yield(r.key, r.data) {
				return
			}
		}
	}
}

// A Ledger knows the keys in a Store. It is for the goroutine that owns the graph.
type Ledger struct {
	store Store  // nil: nothing is remembered
	boot  string // of the host; empty: unknown
	log   *slog.Logger
	graph *graph.Graph
	// kindOf returns the descriptor of a key.
	kindOf func(key string) (Kind, bool)
	// prepare makes the graph's value of a message.
	prepare func(kind Kind, key string, m proto.Message) *graph.Value

	keys *keyset.Set[string]
	// references are the resolved keys of the few keys that have some. Several of one value are
	// joined by keySeparator, which no key contains.
	references map[string]string
	resolved   map[string]string // by resolved key: its key

	unsure map[Kind]map[string]bool // keys with an uncertain actual state
	buffer []record                 // reused
}

// New returns a Ledger. kindOf returns the descriptor of a key; prepare makes the graph's value
// of a message; boot identifies the boot of the host. Without a store, a Ledger does nothing.
func New(store Store, boot string, log *slog.Logger, g *graph.Graph, kindOf func(key string) (Kind, bool), prepare func(kind Kind, key string, m proto.Message) *graph.Value) *Ledger {
	return &Ledger{
		store: store, boot: boot, log: log, graph: g, kindOf: kindOf, prepare: prepare,
		keys: keyset.New(func(key *string) string { return *key }), references: map[string]string{}, resolved: map[string]string{},
	}
}

// Has reports whether key is remembered, also as a resolved key.
func (l *Ledger) Has(key string) bool { return l.hasKey(key) || l.resolved[key] != "" }

// hasKey reports whether key is remembered itself, not only as a resolved key.
func (l *Ledger) hasKey(key string) bool { return l.keys.Get(key) != nil }

// set updates what l knows of one key.
func (l *Ledger) set(key, resolved string, removed bool) {
	if before := l.references[key]; before != "" && before != resolved {
		for k := range strings.SplitSeq(before, keySeparator) {
			if l.resolved[k] == key {
				delete(l.resolved, k)
			}
		}
		delete(l.references, key)
	}
	if removed {
		l.keys.Delete(key)
		return
	}
	if !l.hasKey(key) {
		l.keys.Put(&key)
	}
	if resolved == "" {
		return
	}
	l.references[key] = resolved
	for k := range strings.SplitSeq(resolved, keySeparator) {
		l.resolved[k] = key
	}
}

// markUnsure records that the actual state of key is uncertain.
func (l *Ledger) markUnsure(kind Kind, key string) {
	if l.unsure == nil {
		l.unsure = map[Kind]map[string]bool{}
	}
	if l.unsure[kind] == nil {
		l.unsure[kind] = map[string]bool{}
	}
	l.unsure[kind][key] = true
}

// Load reads the store. It is called once, before all other methods.
func (l *Ledger) Load() {
	if l.store == nil {
		return
	}
	var changed []record
	for key, data := range l.store.Load() {
		kind, ok := l.kindOf(key)
		switch {
		case !ok: // it stays in the store until its descriptor is registered again
		case kind.OnlyRemembered():
			l.set(key, "", false)
			changed = l.loadValue(changed, kind, key, data)
		default:
			l.set(key, string(data), false)
			l.markUnsure(kind, key)
		}
	}
	l.save(changed)
}

// loadValue adds an actual value to the graph that only the store knows. It returns the changes of the store: a value
// that is gone leaves it, and one of a version that knew no boots gets the present one.
func (l *Ledger) loadValue(changed []record, kind Kind, key string, data []byte) []record {
	unsure := len(data) > 0 && data[0] == uncertain
	if unsure {
		data = data[1:]
	}
	if !isPacked(data) {
		l.log.Warn("an earlier version remembered the key alone; the value is assumed to be gone, and stays in the system if it is not declared", "key", key)
		return append(changed, record{key: key})
	}
	saved, err := unpack(data)
	if err != nil {
		l.log.Warn("remembered value is unreadable; it is ignored", "key", key, "err", err)
		return changed
	}
	if why := l.gone(kind, saved); why != "" {
		l.log.Info("a value that cannot be read back is assumed to be gone", "key", key, "reason", why)
		return append(changed, record{key: key})
	}
	meta, err := kind.LoadMeta(saved.meta)
	if err != nil {
		l.log.Warn("remembered metadata is unreadable; the value is assumed to be gone", "key", key, "err", err)
		return append(changed, record{key: key})
	}
	v := l.prepare(kind, key, saved.message)
	if v.Err() != nil {
		return changed
	}
	v.Doubt = unsure
	l.graph.Found(v, meta, false)
	switch {
	case saved.hasBoot:
	case unsure:
		changed = l.recordUncertain(changed, kind, v, meta)
	default:
		changed = l.recordActual(changed, l.graph.Node(key), false)
	}
	return changed
}

// gone returns why a remembered value counts as gone; empty: it stands.
func (l *Ledger) gone(kind Kind, saved packed) string {
	switch {
	case !saved.hasBoot && !kind.HasMeta(): // of an earlier version, which knew no boots
		return ""
	case !saved.whole && !saved.hasBoot:
		return "an earlier version did not remember its metadata; it stays in the system if it is not declared"
	case !saved.whole:
		return "its metadata could not be saved"
	case kind.EndWithBoot() && l.boot == "":
		return "the host does not tell its boots apart"
	case kind.EndWithBoot() && saved.boot != l.boot:
		return "the host was booted"
	}
	return ""
}

// Expect makes room for n keys, so that remembering them moves no memory.
func (l *Ledger) Expect(n int) {
	if l.store != nil {
		l.keys.Grow(n)
	}
}

// Before remembers the values that operations may create, by one write for all operations.
// It is called before they begin.
func (l *Ledger) Before(ops iter.Seq[graph.Op]) {
	if l.store == nil {
		return
	}
	records := l.buffer[:0]
	for op := range ops {
		if op.Node.Base() != nil {
			continue
		}
		v := op.New
		if op.Verb == value.Delete {
			v = op.Old
		}
		kind := v.Kind.(Kind)
		switch {
		case kind.OnlyRemembered():
			records = l.recordUncertain(records, kind, v, op.Meta)
		case op.Verb != value.Delete:
			records = l.recordComing(records, kind, v)
		}
	}
	l.save(records)
}

// Adopted remembers values that became ours because they were found as desired. It is called
// before their state is published.
func (l *Ledger) Adopted() {
	if l.store == nil {
		return
	}
	records := l.buffer[:0]
	for n := range l.graph.Changed(0) {
		if n.News && n.Actual() != nil && l.Outdated(n) {
			records = l.recordActual(records, n, true)
		}
	}
	l.save(records)
}

// recordUncertain records that the actual value, which only the store knows, is changing.
func (l *Ledger) recordUncertain(records []record, kind Kind, v *graph.Value, meta any) []record {
	data, err := l.pack(kind, v, meta)
	if err != nil {
		l.log.Error("value cannot be remembered", "key", v.Key, "err", err)
		return records
	}
	return append(records, record{v.Key, append([]byte{uncertain}, data...), true})
}

// recordComing records a value that is about to exist, perhaps under another resolved key.
func (l *Ledger) recordComing(records []record, kind Kind, v *graph.Value) []record {
	before := l.references[v.Key]
	all := before
	for _, key := range kind.ResolvedKeys(v) {
		switch {
		case all == "":
			all = key
		case !slices.Contains(strings.Split(all, keySeparator), key):
			all += keySeparator + key
		}
	}
	if l.hasKey(v.Key) && all == before {
		return records
	}
	return append(records, record{key: v.Key, data: []byte(all)})
}

// An Outcome is the end of an operation, or another change, that the store may have to follow.
type Outcome struct {
	Key    string
	Unsure bool // no verb of the key has succeeded
}

// Follows reports whether the outcome of an operation may be other than Before has written. After most it is the same:
// the value exists, with the only resolved key that it has had.
func (l *Ledger) Follows(op graph.Op, err error) bool {
	return l.store != nil && (err != nil || op.Verb == value.Delete || len(l.references) > 0 || op.New.Kind.(Kind).OnlyRemembered())
}

// After saves outcomes.
func (l *Ledger) After(ended []Outcome) {
	if l.store == nil {
		return
	}
	records := l.buffer[:0]
	for _, o := range ended {
		records = l.recordEnd(records, o.Key, o.Unsure)
	}
	l.save(records)
}

// recordEnd records the outcome for a key.
func (l *Ledger) recordEnd(records []record, key string, unsure bool) []record {
	n := l.graph.Node(key)
	if n != nil && n.Actual() != nil {
		return l.recordActual(records, n, unsure)
	}
	if of := l.resolved[key]; of != "" && !unsure && !l.exists(of) && !l.anyExists(l.references[of]) {
		records = append(records, record{key: of})
	}
	if !l.hasKey(key) || unsure && n != nil && n.Desired() != nil {
		return records // a desired value stays remembered until it was tried again
	}
	if unsure {
		if kind, ok := l.kindOf(key); ok && !kind.OnlyRemembered() {
			l.markUnsure(kind, key)
			return records
		}
	}
	return append(records, record{key: key})
}

// recordActual records the actual value of n.
func (l *Ledger) recordActual(records []record, n *graph.Node, unsure bool) []record {
	kind, ok := n.Actual().Kind.(Kind)
	key := n.Key()
	if n.Foreign() || !ok || kind.Passive() || unsure && l.Has(key) {
		return records
	}
	if !kind.OnlyRemembered() {
		resolved := strings.Join(kind.ResolvedKeys(n.Actual()), keySeparator)
		if l.hasKey(key) && l.references[key] == resolved {
			return records
		}
		return append(records, record{key: key, data: []byte(resolved)})
	}
	data, err := l.pack(kind, n.Actual(), n.Meta())
	if err != nil {
		l.log.Error("value cannot be remembered", "key", key, "err", err)
		return records
	}
	return append(records, record{key, data, true})
}

// save writes records to the maps and to the store.
func (l *Ledger) save(records []record) {
	if len(records) == 0 {
		return
	}
	for _, r := range records {
		resolved := ""
		if !r.whole {
			resolved = string(r.data)
		}
		l.set(r.key, resolved, r.data == nil)
	}
	if err := l.store.Save(each(records)); err != nil {
		l.log.Error("values that may be ours are not remembered", "values", len(records), "err", err)
	}
	clear(records)
	l.buffer = records[:0]
}

// Outdated reports whether the store may be wrong about n, which had no operation: it was
// found as desired, which makes it ours, or it vanished.
func (l *Ledger) Outdated(n *graph.Node) bool {
	if l.store == nil || n.Base() != nil || n.Foreign() {
		return false
	}
	exists := n.Actual() != nil
	return l.hasKey(n.Key()) != exists && (n.Desired() != nil) == exists
}

// ReadBack forgets the uncertain keys of a descriptor that do not exist. It is called after
// all values of the descriptor were read back.
func (l *Ledger) ReadBack(kind Kind) {
	unsure := l.unsure[kind]
	if len(unsure) == 0 {
		return
	}
	records := l.buffer[:0]
	for key := range unsure {
		if !l.graph.Wants(key) && !l.exists(key) && !l.anyExists(l.references[key]) {
			records = append(records, record{key: key})
		}
	}
	delete(l.unsure, kind)
	l.save(records)
}

// anyExists reports whether one of the resolved keys has an actual value.
func (l *Ledger) anyExists(resolved string) bool {
	if resolved == "" {
		return false
	}
	for key := range strings.SplitSeq(resolved, keySeparator) {
		if l.exists(key) {
			return true
		}
	}
	return false
}

// exists reports whether the graph has an actual value under key.
func (l *Ledger) exists(key string) bool {
	n := l.graph.Node(key)
	return n != nil && n.Actual() != nil
}

// The numbers of the fields that follow those of a packed message (anypb.Any).
const (
	bootField protowire.Number = 101
	metaField protowire.Number = 102 // missing: the metadata could not be saved
)

// A packed value is what pack saves.
type packed struct {
	message proto.Message
	boot    string
	hasBoot bool
	meta    []byte
	whole   bool // the metadata was saved
}

// isPacked reports whether data may come from pack. Earlier versions remembered keys alone, or nothing, of values behind
// a connection.
func isPacked(data []byte) bool {
	const typeURL = 1 // the first field of anypb.Any
	return len(data) > 0 && data[0] == byte(protowire.EncodeTag(typeURL, protowire.BytesType))
}

// pack returns a value in the form that unpack reads after a restart: its message with the
// name of its type, so that reading it needs no descriptor.
func (l *Ledger) pack(kind Kind, v *graph.Value, meta any) ([]byte, error) {
	m, _ := v.Data.(proto.Message)
	a, err := anypb.New(m)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	data, err := proto.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	data = protowire.AppendString(protowire.AppendTag(data, bootField, protowire.BytesType), l.boot)
	saved, err := kind.SaveMeta(meta)
	if err != nil {
		l.log.Error("metadata cannot be remembered; after a restart the value is assumed to be gone", "key", v.Key, "err", err)
		return data, nil
	}
	return protowire.AppendBytes(protowire.AppendTag(data, metaField, protowire.BytesType), saved), nil
}

// unpack returns what pack has saved. It fails if this program does not know the type any more.
func unpack(data []byte) (out packed, err error) {
	var a anypb.Any
	if err := proto.Unmarshal(data, &a); err != nil {
		return out, fmt.Errorf("unpacking: %w", err)
	}
	for rest := []byte(a.ProtoReflect().GetUnknown()); len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 || kind != protowire.BytesType {
			return out, fmt.Errorf("unpacking: field %d", number)
		}
		field, m := protowire.ConsumeBytes(rest[n:])
		if m < 0 {
			return out, fmt.Errorf("unpacking: field %d", number)
		}
		switch rest = rest[n+m:]; number {
		case bootField:
			out.boot, out.hasBoot = string(field), true
		case metaField:
			out.meta, out.whole = field, true
		default: // of a later version
		}
	}
	out.message, err = a.UnmarshalNew()
	return out, err
}

package memory_test

import (
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/memory"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// store is a memory.Store in a map.
type store map[string][]byte

func (s store) Load() iter.Seq2[string, []byte] { return maps.All(s) }

func (s store) Save(changes iter.Seq2[string, []byte]) error {
	for key, data := range changes {
		if data == nil {
			delete(s, key)
		} else {
			s[key] = data
		}
	}
	return nil
}

// kind is a descriptor that can be read back, or only be remembered.
type kind struct {
	onlyRemembered bool
	hasMeta        bool
	lasts          bool   // its values outlive a boot
	plain          bool   // its values have no references
	moved          string // where references lead now
}

func (k *kind) Passive() bool                { return false }
func (k *kind) OnlyRemembered() bool         { return k.onlyRemembered }
func (k *kind) EndWithBoot() bool            { return !k.lasts }
func (k *kind) HasMeta() bool                { return k.hasMeta }
func (k *kind) SaveMeta(any) ([]byte, error) { return nil, nil }
func (k *kind) LoadMeta([]byte) (any, error) { return nil, nil }
func (k *kind) ResolvedKeys(v *graph.Value) []string {
	if k.plain {
		return nil
	}
	return []string{"resolved/" + k.moved + v.Key}
}
func (k *kind) Equivalent(_ string, old, new any) bool {
	return proto.Equal(old.(proto.Message), new.(proto.Message))
}
func (k *kind) Recreate(string, any, any, any) bool { return false }
func (k *kind) Knowledge() *graph.Knowledge         { return nil }
func (k *kind) Evidence() value.Evidence            { return value.ReadAlone }
func (k *kind) Order(string, any) value.Order       { return value.BreakFirst }
func (k *kind) value(key string, m proto.Message) *graph.Value {
	return &graph.Value{Key: key, Data: m, Kind: k}
}

// open returns a ledger over s with an empty graph, as after a restart.
func open(s store, k *kind) (*memory.Ledger, *graph.Graph) { return openAt("boot", s, k) }

// openAt is open after this boot of the host.
func openAt(boot string, s store, k *kind) (*memory.Ledger, *graph.Graph) {
	g := graph.New()
	l := memory.New(s, boot, slog.New(slog.DiscardHandler), g,
		func(string) (memory.Kind, bool) { return k, true },
		func(_ memory.Kind, key string, m proto.Message) *graph.Value { return k.value(key, m) })
	l.Load()
	return l, g
}

// create runs the Create of a value in the graph until just before its verb.
func create(t *testing.T, l *memory.Ledger, g *graph.Graph, v *graph.Value) graph.Op {
	t.Helper()
	g.Want(v)
	op, ok := g.Next()
	if !ok {
		t.Fatal("no operation")
	}
	l.Before(slices.Values([]graph.Op{op}))
	return op
}

func ended(key string, unsure bool) []memory.Outcome {
	return []memory.Outcome{{Key: key, Unsure: unsure}}
}

// TestKeyIsRememberedBeforeCreate: a process that is killed before or after the verb knows the
// key and its resolved key. Reading back forgets the key of an item that does not exist.
func TestKeyIsRememberedBeforeCreate(t *testing.T) {
	s, k := store{}, &kind{}
	l, g := open(s, k)
	create(t, l, g, k.value("a", wrapperspb.String("v")))
	if string(s["a"]) != "resolved/a" {
		t.Fatalf("before the verb the store has %q", s)
	}
	again, _ := open(s, k)
	if !again.Has("a") || !again.Has("resolved/a") || again.Has("b") {
		t.Errorf("after a restart: a %v, resolved %v, b %v; want true, true, false", again.Has("a"), again.Has("resolved/a"), again.Has("b"))
	}
	again.ReadBack(k)
	if len(s) != 0 {
		t.Errorf("after reading back the store has %q", s)
	}
}

// TestValueIsUncertainDuringItsVerb: a value without Retrieve is restored, and in doubt only
// if its verb had not ended.
func TestValueIsUncertainDuringItsVerb(t *testing.T) {
	s, k := store{}, &kind{onlyRemembered: true}
	l, g := open(s, k)
	op := create(t, l, g, k.value("a", wrapperspb.String("v")))
	doubt := func() bool {
		_, restored := open(s, k)
		n := restored.Node("a")
		if n == nil || n.Actual() == nil {
			t.Fatalf("the value is not restored from %q", s)
		}
		return n.Actual().Doubt
	}
	if !doubt() {
		t.Error("a value with an unfinished Create is certain")
	}
	g.Done(op, nil, nil)
	l.After(ended("a", false))
	if doubt() {
		t.Error("a value with a finished Create is uncertain")
	}
}

// TestFailedAttemptsLeaveOneRecord: a value whose reference has moved may exist under the old and the
// new key, however often its Update fails.
func TestFailedAttemptsLeaveOneRecord(t *testing.T) {
	s, k := store{}, &kind{}
	l, g := open(s, k)
	g.Done(create(t, l, g, k.value("a", wrapperspb.String("v"))), nil, nil)
	l.After(ended("a", false))
	k.moved = "far/"
	for i := range 3 {
		g.Done(create(t, l, g, k.value("a", wrapperspb.String(strconv.Itoa(i)))), nil, errors.New("broken"))
		l.After(ended("a", true))
	}
	if got, want := string(s["a"]), "resolved/a\x00resolved/far/a"; got != want {
		t.Errorf("the store has %q, want %q", got, want)
	}
}

// TestOrdinaryOutcomesAreNotFollowed: after a Create or an Update that has succeeded, the store has all already, unless the value
// is known from the store alone, or exists under another key too.
func TestOrdinaryOutcomesAreNotFollowed(t *testing.T) {
	for _, tt := range []struct {
		about string
		kind  *kind
		verb  value.Verb
		err   error
		want  bool
	}{
		{"a Create that has succeeded", &kind{plain: true}, value.Create, nil, false},
		{"an Update that has succeeded", &kind{plain: true}, value.Update, nil, false},
		{"a Create that has failed", &kind{plain: true}, value.Create, errors.New("broken"), true},
		{"a Delete", &kind{plain: true}, value.Delete, nil, true},
		{"a Create of a value with another key", &kind{}, value.Create, nil, true},
		{"a Create of a value that cannot be read back", &kind{plain: true, onlyRemembered: true}, value.Create, nil, true},
	} {
		s := store{}
		l, g := open(s, tt.kind)
		op := create(t, l, g, tt.kind.value("a", wrapperspb.String("v")))
		as := op
		as.Verb = tt.verb
		if got := l.Follows(as, tt.err); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.about, got, tt.want)
		}
		if g.Done(op, nil, tt.err); tt.want {
			continue
		}
		before := string(s["a"])
		if l.After(ended("a", false)); string(s["a"]) != before {
			t.Errorf("%s: After changes %q into %q", tt.about, before, s["a"])
		}
	}
}

// TestUnknownBoot: a host that does not tell its boots apart may have been booted.
func TestUnknownBoot(t *testing.T) {
	s, k := store{}, &kind{onlyRemembered: true}
	for range 2 {
		l, g := openAt("", s, k)
		if n := g.Node("a"); n != nil {
			t.Error("the value of an earlier start stands")
		}
		g.Done(create(t, l, g, k.value("a", wrapperspb.String("v"))), nil, nil)
		l.After(ended("a", false))
	}
}

// TestRecordsOfEarlierVersions: they had values without boot and metadata, and of values behind a connection the key alone,
// perhaps with its resolved keys.
func TestRecordsOfEarlierVersions(t *testing.T) {
	packed, err := anypb.New(wrapperspb.String("v"))
	if err != nil {
		t.Fatal(err)
	}
	value, err := proto.Marshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		kind   kind
		data   []byte
		stands bool
	}{
		{"a value", kind{}, value, true},
		{"a value during a verb", kind{}, append([]byte{0}, value...), true},
		{"a value that had metadata", kind{hasMeta: true}, value, false},
		{"a key", kind{lasts: true}, nil, false},
		{"a key with resolved ones", kind{lasts: true}, []byte("config/a\x00config/b"), false},
	} {
		c.kind.onlyRemembered = true
		s := store{"a": append([]byte{}, c.data...)}
		for _, boot := range []string{"boot", "boot", "another boot"} {
			_, g := openAt(boot, s, &c.kind)
			stands := c.stands && boot == "boot"
			if n := g.Node("a"); (n != nil) != stands || (s["a"] != nil) != stands {
				t.Errorf("%s, at boot %q: %v stands, and the store has %q; stands: %t", c.name, boot, n, s, stands)
			}
		}
	}
}

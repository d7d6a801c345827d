package kvdbsync

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"
)

// A mirrorStep is one line of a story: what the store does, or "take".
type mirrorStep struct{ do, want string }

// Events read "key=value", "key-" for a deleted key, "key?" for an absent one and
// "key!reason" for one that is no value; "list:" puts a complete listing in place.
func TestMirror(t *testing.T) {
	stories := map[string][]mirrorStep{
		"newest value of each key, in the order of their first change": {
			{"b=1 a=1 b=2", ""}, {"take", "b=2 a=1"}, {"take", ""},
		},
		"a duplicate is nothing new": {
			{"a=1", ""}, {"take", "a=1"}, {"a=1", ""}, {"take", ""}, {"list: a=1", ""}, {"take", ""},
		},
		"put and deleted before the consumer looks": {
			{"a=1 a-", ""}, {"take", ""}, {"a-", ""}, {"take", ""},
		},
		"back where the consumer knows it": {
			{"a=1", ""}, {"take", "a=1"}, {"a=2 a=1", ""}, {"take", ""}, {"a- a=1", ""}, {"take", ""},
		},
		"deleted and put anew": {
			{"a=1", ""}, {"take", "a=1"}, {"a- a=2", ""}, {"take", "a=2"}, {"a-", ""}, {"take", "a-"}, {"a=2", ""}, {"take", "a=2"},
		},
		"a listing deletes what it does not have": {
			{"a=1 b=1 c=1", ""}, {"take", "a=1 b=1 c=1"}, {"list: b=2 d=1", ""}, {"take", "b=2 d=1 a? c?"},
		},
		"a key that is absent and returns is nothing new": {
			{"a=1 b=1", ""}, {"take", "a=1 b=1"}, {"list:", ""}, {"a=1", ""}, {"take", "b?"},
		},
		"a deleted key stays deleted when a listing lacks it": {
			{"a=1", ""}, {"take", "a=1"}, {"a-", ""}, {"list:", ""}, {"take", "a-"},
		},
		"a key that a listing lacks, that returns and is deleted, is deleted": {
			{"a=1", ""}, {"take", "a=1"}, {"list:", ""}, {"a=1 a-", ""}, {"take", "a-"},
		},
		"a connector says that a key is absent": {
			{"a=1 b=1", ""}, {"take", "a=1 b=1"}, {"a? b?", ""}, {"list:", ""}, {"b-", ""}, {"take", "a? b-"},
		},
		"what a listing itself takes back is not there": {
			{"a=1", ""}, {"take", "a=1"}, {"list: a=2 b=1 a- b-", ""}, {"take", "a-"},
		},
		"an empty value is a value": {
			{"a=", ""}, {"take", "a="}, {"a-", ""}, {"take", "a-"},
		},
		"an entry that is no value is not gone": {
			{"a=1", ""}, {"take", "a=1"}, {"a!line.3", ""}, {"take", "a!line.3"}, {"a!line.3", ""}, {"take", ""},
			{"a!line.4", ""}, {"take", "a!line.4"}, {"a=1", ""}, {"take", "a=1"}, {"a!line.3 a=1", ""}, {"take", ""},
		},
	}
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			m := newMirror()
			for _, step := range steps {
				if got := play(m, step.do); got != step.want {
					t.Fatalf("%s: got %q, want %q", step.do, got, step.want)
				}
			}
		})
	}
}

func play(m *mirror, do string) string {
	if do == "take" {
		return show(m.take())
	}
	if list, ok := strings.CutPrefix(do, "list:"); ok {
		events := parseEvents(list)
		m.replace(&listing{parts: []part{{events, statesOf(events)}}})
		return ""
	}
	for _, e := range parseEvents(do) {
		put(m, e)
	}
	return ""
}

// put puts an event into a mirror.
func put(m *mirror, e Event) { m.set(&e, stateOf(&e)) }

func parseEvents(text string) []Event {
	var events []Event
	for word := range strings.FieldsSeq(text) {
		if key, value, ok := strings.Cut(word, "="); ok {
			events = append(events, Event{Key: key, Value: []byte(value)})
		} else if key, reason, ok := strings.Cut(word, "!"); ok {
			events = append(events, Event{Key: key, Err: errors.New(reason)})
		} else if key, ok := strings.CutSuffix(word, "?"); ok {
			events = append(events, Event{Key: key, Absent: true})
		} else {
			events = append(events, Event{Key: strings.TrimSuffix(word, "-")})
		}
	}
	return events
}

func show(events []Event) string {
	var words []string
	for _, e := range events {
		switch {
		case e.Err != nil:
			words = append(words, e.Key+"!"+e.Err.Error())
		case e.Value == nil && e.Absent:
			words = append(words, e.Key+"?")
		case e.Value == nil:
			words = append(words, e.Key+"-")
		default:
			words = append(words, e.Key+"="+string(e.Value))
		}
	}
	return strings.Join(words, " ")
}

// A value that the consumer has taken may have megabytes, and the consumer keeps it in another form.
func TestMirrorKeepsNoBytes(t *testing.T) {
	m := newMirror()
	put(m, Event{Key: "a", Value: make([]byte, 1<<20)})
	taken := weak.Make(&m.take()[0].Value[0])
	runtime.GC()
	if taken.Value() != nil {
		t.Error("the bytes of a value are kept after it was taken")
	}
	runtime.KeepAlive(m)
}

// A key that waits for the consumer keeps no value that came in the same batch and was replaced since.
func TestPendingChangesKeepNoReplacedValues(t *testing.T) {
	s := NewSource(Options{Name: "mem"})
	value := make([]byte, 1<<20)
	replaced := weak.Make(&value[0])
	for _, events := range [][]Event{{{Key: "new", Value: []byte("1")}, {Key: "often", Value: value}}, {{Key: "often", Value: []byte("2")}}} {
		if err := s.apply(Batch{Events: events}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	if replaced.Value() != nil {
		t.Error("a replaced value is kept while another key of its batch waits")
	}
	if got := show(s.mirror.take()); got != "new=1 often=2" {
		t.Errorf("the consumer gets %q", got)
	}
}

func TestMirrorForgetsWhatIsGone(t *testing.T) {
	m := newMirror()
	for i := range 100 {
		put(m, Event{Key: fmt.Sprint(i), Value: []byte("x")})
		put(m, Event{Key: fmt.Sprint(i)})
	}
	m.take()
	if m.items.Len() != 0 || len(m.pending) != 0 || m.live != 0 {
		t.Errorf("%d items, %d pending, %d live; want none", m.items.Len(), len(m.pending), m.live)
	}
}

// BenchmarkDiffering is how long the comparison with a listing of 100,000 keys,
// once in ten minutes, holds up what changes meanwhile.
func BenchmarkDiffering(b *testing.B) {
	m := newMirror()
	listed := map[string]state{}
	for i := range 100_000 {
		e := Event{Key: fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i), Value: []byte(`{"name":"x"}`)}
		put(m, e)
		listed[e.Key] = stateOf(&e)
	}
	m.take()
	m.watchTouches()
	for b.Loop() {
		if keys := m.differing(listed); len(keys) > 0 {
			b.Fatal(keys)
		}
	}
}

func BenchmarkMirrorTake(b *testing.B) {
	m := newMirror()
	key := make([]string, 1000)
	for i := range key {
		key[i] = fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i)
	}
	values := [][]byte{[]byte("one"), []byte("two")}
	for i := 0; b.Loop(); i++ {
		put(m, Event{Key: key[i%len(key)], Value: values[i/len(key)%2], Rev: int64(i)})
		if i%64 == 0 {
			m.take()
		}
	}
}

// TestSizeOfAnItem guards the memory that each key of a store takes in the agent.
func TestSizeOfAnItem(t *testing.T) {
	if size := unsafe.Sizeof(item{}); size > 48 {
		t.Errorf("an item takes %d bytes; expected at most 48", size)
	}
}

// TestOriginOfTheNewestValue changes the line of a value with and without its content.
func TestOriginOfTheNewestValue(t *testing.T) {
	m := newMirror()
	put(m, Event{Key: "a", Value: []byte("1"), Origin: Origin{Line: 1}})
	put(m, Event{Key: "a", Value: []byte("2"), Origin: Origin{Line: 2}})
	put(m, Event{Key: "a", Value: []byte("2"), Origin: Origin{Line: 3}, Rev: 7})
	if got := m.take(); len(got) != 1 || got[0].Origin.Line != 2 || got[0].Rev != 7 {
		t.Errorf("the consumer gets %+v; expected line 2 of revision 7", got)
	}
}

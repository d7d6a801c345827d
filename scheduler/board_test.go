package scheduler

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestBoard puts and drops statuses, and looks for them now and then.
func TestBoard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := board{missed: rapid.Bool().Draw(t, "missed")}
		var f finder
		shown := map[string]*Status{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := string(rune('a' + rapid.IntRange(0, 11).Draw(t, "key")))
			switch old := shown[key]; {
			case old == nil || rapid.Bool().Draw(t, "put"):
				st := &Status{Key: key, slot: slotOf(old)}
				b.put(st)
				shown[key] = st
			default:
				b.drop(old.slot)
				delete(shown, key)
			}
			if rapid.Bool().Draw(t, "not asked") {
				continue
			}
			for i := range 12 {
				key := string(rune('a' + i))
				if got := f.find(&b, key); got != shown[key] {
					t.Fatalf("%s is %v, not %v", key, got, shown[key])
				}
			}
		}
		each := map[string]*Status{}
		b.each(func(st *Status) { each[st.Key] = st })
		if !maps.Equal(each, shown) {
			t.Fatalf("%v, not %v", each, shown)
		}
		if b.len() != len(shown) {
			t.Fatalf("%d, not %d", b.len(), len(shown))
		}
	})
}

func slotOf(st *Status) int32 {
	if st == nil {
		return 0
	}
	return st.slot
}

// TestFinderForgets looks keys up that come and go.
func TestFinderForgets(t *testing.T) {
	b := board{missed: true}
	var f finder
	for i := range 4 * mostTaken {
		st := &Status{Key: fmt.Sprint(i)}
		b.put(st)
		if f.find(&b, st.Key) != st {
			t.Fatalf("%s is not found", st.Key)
		}
		b.drop(st.slot)
	}
	if len(f.slots) > 2*mostTaken {
		t.Errorf("%d keys are known, and none is there", len(f.slots))
	}
	for i := range 2 * mostTaken { // more than are listed
		b.put(&Status{Key: fmt.Sprint(i)})
	}
	if f.find(&b, "17") == nil || len(b.taken) > 0 {
		t.Errorf("a key among many is not found, or %d are still listed", len(b.taken))
	}
}

// BenchmarkStatus looks a key up among 100 k.
func BenchmarkStatus(b *testing.B) {
	const n = 100_000
	s := New(Options{})
	for i := range n {
		s.board.put(&Status{Key: fmt.Sprintf("config/%d", i)})
	}
	for b.Loop() {
		if _, ok := s.Status("config/50000"); !ok {
			b.Fatal("not there")
		}
	}
}

package scheduler

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestBoard puts and drops statuses of keys of which many have the same hash.
func TestBoard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBoard()
		b.hash = func(key string) uint32 { return uint32(key[0] % 3) }
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
			for i := range 12 {
				key := string(rune('a' + i))
				if got := b.find(key); got != shown[key] {
					t.Fatalf("%s is %v, not %v", key, got, shown[key])
				}
			}
		}
		each := map[string]*Status{}
		b.each(func(st *Status) { each[st.Key] = st })
		if !maps.Equal(each, shown) {
			t.Fatalf("%v, not %v", each, shown)
		}
		if b.hidden+len(b.byHash) != len(shown) {
			t.Fatalf("%d by hash, %d hidden, of %d", len(b.byHash), b.hidden, len(shown))
		}
	})
}

func slotOf(st *Status) int32 {
	if st == nil {
		return 0
	}
	return st.slot
}

// BenchmarkStatus looks a key up among 1 M.
func BenchmarkStatus(b *testing.B) {
	const n = 1_000_000
	s := New(Options{})
	for i := range n {
		s.board.put(&Status{Key: fmt.Sprintf("config/%d", i)})
	}
	for b.Loop() {
		if _, ok := s.Status("config/500000"); !ok {
			b.Fatal("not there")
		}
	}
}

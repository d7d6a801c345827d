package published

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

type entry struct{ key string }

func newTable() *Table[entry] { return NewTable(func(e *entry) string { return e.key }) }

// TestTable compares a table with a map, through random changes and lookups.
func TestTable(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		table := newTable()
		table.recent.overflow = rapid.Bool().Draw(t, "overflow")
		shown, slots := map[string]*entry{}, map[string]int32{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := string(rune('a' + rapid.IntRange(0, 11).Draw(t, "key")))
			if shown[key] == nil || rapid.Bool().Draw(t, "put") {
				shown[key] = &entry{key}
				slots[key] = table.Put(slots[key], shown[key])
			} else {
				table.Drop(slots[key])
				delete(shown, key)
				delete(slots, key)
			}
			if rapid.Bool().Draw(t, "no lookup") {
				continue
			}
			for i := range 12 {
				key := string(rune('a' + i))
				if got := table.Find(key); got != shown[key] {
					t.Fatalf("Find(%s) = %v; want %v", key, got, shown[key])
				}
			}
		}
		all := map[string]*entry{}
		for e := range table.All() {
			all[e.key] = e
		}
		if !maps.Equal(all, shown) {
			t.Fatalf("All yields %v; want %v", all, shown)
		}
		if table.Len() != len(shown) {
			t.Fatalf("Len() = %d; want %d", table.Len(), len(shown))
		}
	})
}

// TestAllKeepsItsMoment writes to the table while a reader goes through it.
func TestAllKeepsItsMoment(t *testing.T) {
	table := newTable()
	slots := make([]int32, 2*chunkSize)
	for i := range slots {
		slots[i] = table.Put(0, &entry{"old"})
	}
	seen := 0
	for e := range table.All() {
		if seen == 0 {
			for _, slot := range slots {
				table.Put(slot, &entry{"new"})
			}
		}
		if e.key != "old" {
			t.Fatalf("entry %d is from after the reader began", seen)
		}
		seen++
	}
	if seen != len(slots) {
		t.Errorf("saw %d entries; want %d", seen, len(slots))
	}
}

// TestFindForgetsDroppedKeys looks up keys that come and go.
func TestFindForgetsDroppedKeys(t *testing.T) {
	table := newTable()
	for i := range 4 * maxRecent {
		e := &entry{fmt.Sprint(i)}
		slot := table.Put(0, e)
		if table.Find(e.key) != e {
			t.Fatalf("%s is not found", e.key)
		}
		table.Drop(slot)
	}
	if n := table.find.known; n > 2*maxRecent {
		t.Errorf("%d keys are remembered; none is in the table", n)
	}
	for i := range 2 * maxRecent { // more than recent lists
		table.Put(0, &entry{fmt.Sprint(i)})
	}
	if table.Find("17") == nil {
		t.Error("17 is not found")
	}
	if n := len(table.recent.slots); n > 0 {
		t.Errorf("%d slots are still listed after a lookup", n)
	}
}

// BenchmarkFind looks one key up among 100 k.
func BenchmarkFind(b *testing.B) {
	table := newTable()
	for i := range 100_000 {
		table.Put(0, &entry{fmt.Sprintf("config/%d", i)})
	}
	for b.Loop() {
		if table.Find("config/50000") == nil {
			b.Fatal("not there")
		}
	}
}

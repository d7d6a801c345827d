package keyset_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/keyset"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// An entry counts how often its key was put.
type entry struct {
	key   string
	times int
}

func key(e *entry) string { return e.key }

// TestLikeAMap does the same to a Set and to a map, with few and with many keys.
func TestLikeAMap(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		s, m := keyset.New(key), map[string]*entry{}
		keys := rapid.SampledFrom([]int{3, 100, 3000}).Draw(t, "keys")
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			first := rapid.IntRange(0, keys-1).Draw(t, "first")
			some := min(keys, first+rapid.IntRange(1, keys).Draw(t, "some"))
			switch rapid.SampledFrom([]string{"put", "delete", "grow", "delete while reading"}).Draw(t, "do") {
			case "put":
				for i := first; i < some; i++ {
					e := &entry{key: fmt.Sprint("key", i)}
					if old := m[e.key]; old != nil {
						e.times = old.times + 1
					}
					s.Put(e)
					m[e.key] = e
				}
			case "delete":
				for i := first; i < some; i++ {
					s.Delete(fmt.Sprint("key", i))
					delete(m, fmt.Sprint("key", i))
				}
			case "grow":
				s.Grow(some)
			case "delete while reading":
				for e := range s.All() {
					if len(e.key)%2 == first%2 {
						s.Delete(e.key)
						delete(m, e.key)
					}
				}
			}
			compare(t, s, m, keys)
		}
	})
}

// compare fails unless s and m have the same entries.
func compare(t *rapid.T, s *keyset.Set[entry], m map[string]*entry, keys int) {
	if s.Len() != len(m) {
		t.Fatalf("%d entries; expected %d", s.Len(), len(m))
	}
	for i := range keys {
		if k := fmt.Sprint("key", i); s.Get(k) != m[k] {
			t.Fatalf("%s has %v; expected %v", k, s.Get(k), m[k])
		}
	}
	all := slices.Collect(s.All())
	if len(all) != len(m) {
		t.Fatalf("All yields %d entries; expected %d", len(all), len(m))
	}
	for _, e := range all {
		if m[e.key] != e {
			t.Fatalf("All yields %v; expected %v", e, m[e.key])
		}
	}
}

// All ends when its reader stops.
func TestAllStops(t *testing.T) {
	s := keyset.New(key)
	for i := range 100 {
		s.Put(&entry{key: fmt.Sprint(i)})
	}
	n := 0
	for range s.All() {
		if n++; n == 40 {
			break
		}
	}
	if n != 40 {
		t.Errorf("%d entries were read; expected 40", n)
	}
}

// BenchmarkMemory is the memory of a place in a Set, and of one in a map.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	entries := make([]entry, n)
	for i := range entries {
		entries[i].key = fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i)
	}
	for b.Loop() {
		before := heap()
		s := keyset.New(key)
		for i := range entries {
			s.Put(&entries[i])
		}
		set := heap() - before
		m := map[string]*entry{}
		for i := range entries {
			m[entries[i].key] = &entries[i]
		}
		b.ReportMetric(float64(set)/n, "B/place")
		b.ReportMetric(float64(heap()-before-set)/n, "B/place-of-map")
		runtime.KeepAlive(s)
		runtime.KeepAlive(m)
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// BenchmarkGet looks up one of 100,000 keys and reads its entry; map is the same with a map.
func BenchmarkGet(b *testing.B) {
	const n = 100_000
	s, m := keyset.New(key), map[string]*entry{}
	for i := range n {
		e := &entry{key: fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i)}
		s.Put(e)
		m[e.key] = e
	}
	keys := slices.Collect(maps.Keys(m))
	for name, get := range map[string]func(string) *entry{"set": s.Get, "map": func(k string) *entry { return m[k] }} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if e := get(keys[i%n]); e == nil || e.times != 0 {
					b.Fatal("an entry is missing")
				}
			}
		})
	}
}

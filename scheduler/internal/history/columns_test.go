package history_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/scheduler/internal/history"
)

type item struct {
	Key   string
	Order uint64
	Done  bool
	Err   error
	Meta  any
	Waits []string
	Never *int
}

func pack(all []item) history.Packed[item] {
	return history.Pack(len(all), func(i int) item { return all[i] })
}

func same(a, b item) bool {
	return a.Key == b.Key && a.Order == b.Order && a.Done == b.Done && a.Err == b.Err && a.Meta == b.Meta &&
		slices.Equal(a.Waits, b.Waits) && a.Never == b.Never
}

func TestPackAndUnpack(t *testing.T) {
	err := errors.New("broken")
	draw.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(rapid.Custom(func(t *rapid.T) item {
			return item{
				Key: rapid.String().Draw(t, "key"), Order: rapid.Uint64().Draw(t, "order"), Done: rapid.Bool().Draw(t, "done"),
				Err:   rapid.SampledFrom([]error{nil, err}).Draw(t, "err"),
				Meta:  rapid.SampledFrom([]any{nil, 0, "text"}).Draw(t, "meta"),
				Waits: rapid.SliceOf(rapid.String()).Draw(t, "waits"),
			}
		})).Draw(t, "items")
		if got := pack(all).Unpack(len(all)); !slices.EqualFunc(got, all, same) {
			t.Fatalf("got %v; want %v", got, all)
		}
	})
}

// TestZeroFieldsTakeNoMemory packs large structs of which one field is set.
func TestZeroFieldsTakeNoMemory(t *testing.T) {
	all := make([]item, 1000)
	for i := range all {
		all[i].Order = uint64(i + 1)
	}
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pack(all)
		}
	})
	if most := int64(12 * len(all)); result.AllocedBytesPerOp() > most {
		t.Errorf("%d structs take %d bytes; expected at most %d", len(all), result.AllocedBytesPerOp(), most)
	}
}

func BenchmarkPack(b *testing.B) {
	all := make([]item, 1000)
	for i := range all {
		all[i] = item{Key: "key", Order: uint64(i + 1), Meta: i}
	}
	for b.Loop() {
		pack(all)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/struct")
}

// TestReadersShareOne: a value is made once while it is used, and again after nobody used it.
func TestReadersShareOne(t *testing.T) {
	var r history.Recent[item]
	made := 0
	get := func() *item { return r.Get(func() *item { made++; return &item{Order: uint64(made)} }) }
	first, second := get(), get()
	if first != second || made != 1 {
		t.Errorf("%d values are made, want one", made)
	}
	runtime.KeepAlive(first)
	for range 2 { // the second one frees what the first one found unused
		runtime.GC()
	}
	if v := get(); v.Order != 2 {
		t.Errorf("value %d is kept although nobody uses it", v.Order)
	}
}

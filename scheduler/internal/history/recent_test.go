package history_test

import (
	"runtime"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/history"
)

type item struct{ Order uint64 }

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

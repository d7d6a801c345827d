package goruntime

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestHeapMayGrowAtTheStart(t *testing.T) {
	const usual = 100
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	expect := func(what string, want int) {
		t.Helper()
		if got := debug.SetGCPercent(want); got != want {
			t.Errorf("%s GOGC is %d, want %d", what, got, want)
		}
	}
	_, over := AllowHeapGrowth(func(name string) (string, bool) { return "", name == "GOMEMLIMIT" }, math.MaxInt64, nil)
	expect("at the start", StartGC)
	over()
	expect("then", usual)
	over()
	expect("after that", usual)
	_, over = AllowHeapGrowth(func(name string) (string, bool) { return "50", true }, math.MaxInt64, nil)
	over()
	expect("with GOGC set by the user", usual)
}

// A limit that the user has set stays. Any other follows the memory in use.
func TestSoftLimitOfMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const mine = 3 << 30
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mine))
	AllowHeapGrowth(func(string) (string, bool) { return "1", true }, math.MaxInt64, nil)
	if got := debug.SetMemoryLimit(-1); got != mine {
		t.Errorf("the limit is %d although the user has set one, want %d", got, mine)
	}
	var scarce atomic.Bool
	applied, _ := AllowHeapGrowth(func(name string) (string, bool) { return "1", name == "GOGC" }, math.MaxInt64, scarce.Store)
	if got := debug.SetMemoryLimit(-1); got != AmpleMemory {
		t.Errorf("the limit is %d at the start, want %d", got, AmpleMemory)
	}
	applied()
	if got := debug.SetMemoryLimit(-1); got != usualMemory {
		t.Errorf("the limit is %d, want %d", got, usualMemory)
	}
	some := make([]byte, scarceFrom)
	for !scarce.Load() { // set on a goroutine of the runtime
		runtime.GC()
	}
	large := make([]byte, 3*usualMemory)
	for scarce.Load() || debug.SetMemoryLimit(-1) < 3*usualMemory {
		runtime.GC()
	}
	runtime.KeepAlive(some)
	runtime.KeepAlive(large)
	for debug.SetMemoryLimit(-1) > usualMemory {
		runtime.GC()
	}
}

// Near the end of the memory that there is, garbage is collected as often as that needs.
func TestLimitOfAControlGroup(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	const most = 100 << 20
	AllowHeapGrowth(func(name string) (string, bool) { return "1", name == "GOGC" }, most, func(bool) {})
	if got, want := debug.SetMemoryLimit(-1), int64(most*9/10); got > want || got < want-10 {
		t.Errorf("the limit is %d, want %d", got, want)
	}
}

func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name  string
		inUse int64
		want  int64
	}{
		{"an agent without configuration", 20 * mib, 132 * mib},
		{"a few thousand keys", 40 * mib, 132 * mib},
		{"as much as fits", 80 * mib, 132 * mib},
		{"a burst", 92 * mib, 144 * mib},
		{"a large burst", 120 * mib, 152 * mib},
		{"more than fits", 140 * mib, 152 * mib},
		{"far more than fits", 170 * mib, 178 * mib},
		{"much more than fits", 200 * mib, 216 * mib},
		{"a million keys", 1500 * mib, 2166 * mib},
	} {
		if got := memoryLimit(test.inUse, false); got != test.want {
			t.Errorf("%s: the limit is %d MiB, want %d MiB", test.name, got/mib, test.want/mib)
		}
	}
	for inUse, want := range map[int64]int64{90: 300, 170: 300, 200: 360} {
		if got := memoryLimit(inUse*mib, true); got != want*mib {
			t.Errorf("with %d MiB during the start the limit is %d MiB, want %d MiB", inUse, got/mib, want)
		}
	}
}

// Operations that follow the first transaction, such as those of routes whose links come up
// later, belong to the start.
func TestStartLastsWhileOperationsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := []uint64{10, 500, 900, 900, 1000}
		asked := 0
		begun := time.Now()
		AwaitQuiet(t.Context(), func() uint64 { asked++; return counts[asked-1] })
		if took := time.Since(begun); asked != 4 || took != 3*quietTime {
			t.Errorf("the start was over after %d counts and %v, want 4 and %v", asked, took, 3*quietTime)
		}
	})
}

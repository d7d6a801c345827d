package main

import (
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestHeapMayGrowAtTheStart(t *testing.T) {
	const usual = 100
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	expect := func(what string, want int) {
		t.Helper()
		if got := debug.SetGCPercent(want); got != want {
			t.Errorf("%s GOGC is %d, want %d", what, got, want)
		}
	}
	done := allowHeapGrowth(func(string) (string, bool) { return "", false })
	expect("at the start", startGC)
	done()
	expect("then", usual)
	done()
	expect("after that", usual)
	allowHeapGrowth(func(name string) (string, bool) { return "50", name == "GOGC" })()
	expect("with GOGC set by the user", usual)
}

// Operations that follow the first transaction, such as those of routes whose links come up
// later, belong to the start.
func TestStartLastsWhileOperationsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := []uint64{10, 500, 900, 900, 1000}
		asked := 0
		begun := time.Now()
		awaitQuiet(t.Context(), func() uint64 { asked++; return counts[asked-1] })
		if took := time.Since(begun); asked != 4 || took != 3*quietTime {
			t.Errorf("the start was over after %d counts and %v, want 4 and %v", asked, took, 3*quietTime)
		}
	})
}

package main

import (
	"runtime/debug"
	"testing"
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
	done := takeIn(func(string) (string, bool) { return "", false })
	expect("at the start", startGC)
	done()
	expect("then", usual)
	done()
	expect("after that", usual)
	takeIn(func(name string) (string, bool) { return "50", name == "GOGC" })()
	expect("where somebody has set it", usual)
}

package goruntime

import (
	"runtime"
	"testing"
)

func TestThreadsForLongComputations(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	AddThreads(func(name string) (string, bool) { return "1", name == "GOMAXPROCS" })
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("there are %d threads although the user has chosen %d", got, before)
	}
	AddThreads(func(string) (string, bool) { return "", false })
	if got := runtime.GOMAXPROCS(0); got != before+longComputations {
		t.Errorf("there are %d threads, want %d", got, before+longComputations)
	}
}

package history_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/history"
)

func TestTheOldestItemsLeave(t *testing.T) {
	for name, c := range map[string]struct {
		maxCount, maxBytes int
		sizes              []int
		want               []int // indexes of sizes
	}{
		"by number":                      {2, 100, []int{1, 1, 1}, []int{1, 2}},
		"by memory":                      {9, 10, []int{4, 4, 4}, []int{1, 2}},
		"several at once":                {9, 10, []int{4, 4, 9}, []int{2}},
		"the newest stays, if too large": {9, 10, []int{4, 40}, []int{1}},
	} {
		h := history.New[int](c.maxCount, c.maxBytes)
		for i, size := range c.sizes {
			h.Add(i, size)
		}
		if got, all := h.Since(0); !slices.Equal(got, c.want) || all != uint64(len(c.sizes)) {
			t.Errorf("%s: %v are kept of %d, want %v", name, got, all, c.want)
		}
	}
}

// TestReplace replaces an item by a smaller form, which leaves room for another one.
func TestReplace(t *testing.T) {
	h := history.New[int](3, 10)
	for i := range 3 {
		h.Add(i, 4)
	}
	proceed := make(chan bool)
	h.Replace(1, func() (int, int) { <-proceed; return 10, 2 })
	h.Add(3, 4)                                     // 1 does not count at present
	proceed <- true                                 // nobody has waited for it
	h.Replace(0, func() (int, int) { return 5, 1 }) // no longer kept
	h.Wait()
	if got, _ := h.Since(0); !slices.Equal(got, []int{10, 2, 3}) {
		t.Errorf("%v are kept, want [10 2 3]", got)
	}
}

// TestSince leaves out what was asked for before, whether it is still kept or not.
func TestSince(t *testing.T) {
	h := history.New[int](3, 100)
	for i := range 5 {
		h.Add(i, 1)
	}
	for n, want := range [][]int{{2, 3, 4}, {2, 3, 4}, {2, 3, 4}, {3, 4}, {4}, {}, {}} {
		if got, all := h.Since(uint64(n)); !slices.Equal(got, want) || all != 5 {
			t.Errorf("since %d: %v of %d, want %v of 5", n, got, all, want)
		}
	}
}

func TestTextHoldsNoError(t *testing.T) {
	cause := errors.New("cause")
	got := history.Text(fmt.Errorf("verb: %w", cause))
	if got.Error() != "verb: cause" || errors.Is(got, cause) {
		t.Errorf("got %v, which still has its cause: %t", got, errors.Is(got, cause))
	}
	if long := history.Text(errors.New(strings.Repeat("x", 10_000))); len(long.Error()) > history.MaxText+100 {
		t.Errorf("a long text has %d bytes", len(long.Error()))
	}
	if history.Text(nil) != nil {
		t.Error("no error has a text")
	}
}

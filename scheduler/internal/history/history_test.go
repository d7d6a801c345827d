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

// TestEqualTextsAreOne: a hundred thousand values may have one fault.
func TestEqualTextsAreOne(t *testing.T) {
	text, fault := history.Texts(), errors.New("no room")
	for _, err := range []error{fault, nil, fault, errors.New("no such device")} {
		if got := text(err); fmt.Sprint(got) != fmt.Sprint(err) || got != nil && got == err {
			t.Errorf("the text of %v is %v", err, got)
		}
	}
	text(fault)
	if n := testing.AllocsPerRun(100, func() { text(fault) }); n > 0 {
		t.Errorf("an equal text takes %v allocations", n)
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

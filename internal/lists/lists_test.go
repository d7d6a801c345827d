package lists_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

func Example() {
	for i, one := range lists.Firsts([]string{"a", "b", "a", "c"}) {
		fmt.Println(i, one)
	}
	fmt.Println(lists.Without([]int{3, 1, 2, 3}, []int{1}), lists.Unique([]int{3, 1, 3}), lists.Set([]int{7})[7])
	// Output:
	// 0 a
	// 1 b
	// 3 c
	// [3 2 3] [3 1] true
}

// TestLikeNestedLoops compares the functions with the plain way to write them.
func TestLikeNestedLoops(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOf(rapid.IntRange(0, 9))
		all, other := draw.Draw(t, "all"), draw.Draw(t, "other")
		var unique, without []int
		for i, one := range all {
			if !slices.Contains(all[:i], one) {
				unique = append(unique, one)
			}
			if !slices.Contains(other, one) {
				without = append(without, one)
			}
			if lists.Set(all)[one] != slices.Contains(all, one) {
				t.Fatalf("%d is in the set", one)
			}
		}
		if got := lists.Unique(all); !slices.Equal(got, unique) {
			t.Fatalf("Unique(%v) is %v, want %v", all, got, unique)
		}
		if got := lists.Without(all, other); !slices.Equal(got, without) {
			t.Fatalf("Without(%v, %v) is %v, want %v", all, other, got, without)
		}
		for range lists.Firsts(all) {
			break // a caller may stop
		}
	})
}

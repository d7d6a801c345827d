package models_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/models"
)

func ExampleFaults() {
	var f models.Faults
	for i := range 100_000 {
		f.Add(fmt.Sprintf("ip_addresses[%d]", i), "x", "an address")
	}
	lines := strings.Split(f.Err().Error(), "\n")
	fmt.Println(lines[0])
	fmt.Println(len(lines), lines[8])
	// Output:
	// ip_addresses[0] is "x"; expected an address
	// 9 and 99,992 more
}

// TestBounded: whatever way errors are joined, 8 are told and the others are counted, once.
func TestBounded(t *testing.T) {
	if models.Bounded(nil) != nil {
		t.Error("no error became one")
	}
	draw.Check(t, func(t *rapid.T) {
		total := 0
		var err error
		for range rapid.IntRange(0, 5).Draw(t, "joins") {
			var part models.Faults
			n := rapid.IntRange(0, 20).Draw(t, "n")
			for range n {
				part.AddError(errors.New("wrong"))
			}
			total += n
			err = errors.Join(err, part.Err())
		}
		bounded := models.Bounded(err)
		if total == 0 {
			if bounded != nil {
				t.Fatal(bounded)
			}
			return
		}
		want := strings.Repeat("wrong\n", min(total, 8))
		if total > 8 {
			want += fmt.Sprintf("and %d more\n", total-8)
		}
		if got := bounded.Error() + "\n"; got != want {
			t.Fatalf("%d errors are told as\n%swant\n%s", total, got, want)
		}
		if again := models.Bounded(bounded).Error() + "\n"; again != want {
			t.Fatalf("bounded twice it says\n%s", again)
		}
	})
}

// TestFaultsBeyondTheFirstAreFree: what is only counted takes no memory.
func TestFaultsBeyondTheFirstAreFree(t *testing.T) {
	var f models.Faults
	add := func() { f.Add("field", "value", "something") }
	for !f.Full() {
		add()
	}
	if n := testing.AllocsPerRun(1000, add); n > 0 {
		t.Errorf("an error that is only counted takes %v allocations", n)
	}
}

package show_test

import (
	"testing"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// TestShort has no digits that push other columns off an 80 columns wide table.
func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 83200 * time.Nanosecond: "83µs", 98_192 * time.Microsecond: "98ms", time.Second - 1: "999ms",
		time.Second: "1s", 61 * time.Second: "1m1s", 11 * time.Minute: "11m", 49 * time.Hour: "2d", -959 * time.Hour: "-39d",
	} {
		if got := show.Short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 values", 1: "1 value", 2: "2 values"} {
		if got := show.Count(n, "value"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

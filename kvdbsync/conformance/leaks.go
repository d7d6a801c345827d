package conformance

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// leavesNone calls do, and waits until all goroutines have ended that do has started,
// directly or indirectly, for as long as the patience of h. It identifies them by a label that they inherit, so other
// goroutines do not matter.
func leavesNone(t *testing.T, h Harness, do func(ctx context.Context)) {
	t.Helper()
	const label = "conformance"
	pprof.Do(t.Context(), pprof.Labels(label, t.Name()), do)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(h.Patience)
	for {
		left := labelled(t, fmt.Sprintf("%q:%q", label, t.Name()))
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("goroutines are left:\n%s", strings.Join(left, "\n"))
		}
	}
}

// labelled are the stacks of the goroutines with a label.
func labelled(t *testing.T, label string) (stacks []string) {
	t.Helper()
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(text.String(), "\n\n") {
		if strings.Contains(stack, label) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

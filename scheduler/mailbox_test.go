package scheduler

import (
	"context"
	"testing"
)

// TestMailboxKeepsTogether: of what is put at once nothing is taken alone.
func TestMailboxKeepsTogether(t *testing.T) {
	box := newMailbox[int]()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for n := range 10_000 {
			box.putAll(func(i int) string { return []string{"even", "odd"}[i%2] }, 2*n, 2*n+1)
		}
	}()
	for {
		pair, err := box.next(ctx)
		if err != nil {
			return
		}
		if len(pair) != 2 || pair[0]+1 != pair[1] {
			t.Fatalf("taken was %v", pair)
		}
	}
}

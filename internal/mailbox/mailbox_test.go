package mailbox_test

import (
	"context"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/internal/mailbox"
)

// TestPutAllIsTakenWhole checks that the reader never gets half of one PutAll.
func TestPutAllIsTakenWhole(t *testing.T) {
	box := mailbox.New[int]()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for n := range 10_000 {
			box.PutAll(func(i int) string { return []string{"even", "odd"}[i%2] }, 2*n, 2*n+1)
		}
	}()
	for {
		pair, err := box.Next(ctx)
		if err != nil {
			return
		}
		if len(pair) != 2 || pair[0]+1 != pair[1] {
			t.Fatalf("got %v; want two numbers that were put together", pair)
		}
	}
}

// TestPutMissingKeepsNewerItems fills a box with a snapshot after a change has arrived.
func TestPutMissingKeepsNewerItems(t *testing.T) {
	box := mailbox.New[string]()
	box.Put("a", "changed")
	box.PutMissing("a", "snapshot")
	box.PutMissing("b", "snapshot")
	got, err := box.Next(t.Context())
	if err != nil || !slices.Equal(got, []string{"changed", "snapshot"}) {
		t.Errorf("got %q, %v; want the change of a and the snapshot of b", got, err)
	}
	box.PutMissing("a", "next")
	if got := box.Take(); !slices.Equal(got, []string{"next"}) {
		t.Errorf("got %q; want the item that was put after the others were taken", got)
	}
}

// TestHas looks for items.
func TestHas(t *testing.T) {
	box := mailbox.New[string]()
	box.Put("a", "a1")
	if !box.Has("a") || box.Has("b") {
		t.Error("want only a")
	}
	if box.Take(); box.Has("a") {
		t.Error("want nothing after Take")
	}
}

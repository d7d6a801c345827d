package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// ListingOf lists the store once, and describes the listing. The test fails if the listing
// is not complete within 5 minutes.
func ListingOf(t testing.TB, c kvdbsync.Connector, prefix string) (l kvdbsync.Listing) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.Began = time.Now()
	for b, err := range c.Watch(ctx, prefix) {
		if err != nil {
			t.Fatalf("the listing is not complete: %v", err)
		}
		l.Keys += len(b.Events)
		l.Rev = max(l.Rev, b.Rev)
		if b.Identity != "" {
			l.Identity, l.Former = b.Identity, b.Former
		}
		if b.Synced {
			return l
		}
	}
	t.Fatal("the watch ended before the listing was complete")
	return l
}

// oneIdentity lists a store before and after it was written and cut off: it must have the
// same identity.
func oneIdentity(t *testing.T, h Harness) {
	before := ListingOf(t, h.Connector, h.Prefix)
	h.Put(h.Prefix+"config/item/a", value("one"))
	if err := ListingOf(t, h.Connector, h.Prefix).Succeeds(before); err != nil {
		t.Errorf("a store that was written: %v", err)
	}
}

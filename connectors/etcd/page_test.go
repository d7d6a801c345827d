package etcd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func TestNextPage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pairs, bytes int // of the page before
		listed       int // before that
		want         int64
	}{
		{1000, 200, 0, 10485},
		{1000, 1, 0, mostPairs},
		{100, 1 << 20, 0, 8},
		{1, 8 << 20, 0, 1},
		{1000, 200, 8_000_000, 20500},
		{1000, 200, 1 << 30, 41943},
		{1000, 100, 1 << 30, mostPairs},
	}
	for _, tt := range tests {
		page := make([]*mvccpb.KeyValue, tt.pairs)
		for i := range page {
			page[i] = &mvccpb.KeyValue{Value: make([]byte, tt.bytes)}
		}
		p := pager{listed: tt.listed}
		if got := p.next(page); got != tt.want {
			t.Errorf("after %d bytes, and %d pairs of %d bytes %d, want %d", tt.listed, tt.pairs, tt.bytes, got, tt.want)
		}
	}
}

// A silence halves the pages, and whatever a listing can survive does not end it unless it
// comes too often in a row.
func TestInterruptedListing(t *testing.T) {
	t.Parallel()
	quiet := fmt.Errorf("page: %w", &silence{time.Second})
	for name, test := range map[string]struct {
		err      error
		hasPages bool
		times    int // that the listing goes on
		size     int64
	}{
		"silence at first":            {quiet, false, mostFirstTries, firstPage >> (mostFirstTries + 1)},
		"silence later":               {quiet, true, mostTries, firstPage >> (mostTries + 1)},
		"unreachable at first":        {rpctypes.ErrNoLeader, false, 0, firstPage},
		"unreachable later":           {rpctypes.ErrNoLeader, true, mostTries, firstPage},
		"compacted":                   {rpctypes.ErrCompacted, true, 0, firstPage},
		"another cluster":             {ErrOtherCluster, true, 0, firstPage},
		"something that nobody knows": {errors.New("what"), true, 0, firstPage},
	} {
		p := newPager()
		times := 0
		for p.interrupted(test.err, test.hasPages) {
			times++
		}
		if times != test.times || p.size != test.size {
			t.Errorf("%s: went on %d times, then asks for %d; want %d, %d", name, times, p.size, test.times, test.size)
		}
	}
	p := newPager()
	p.interrupted(quiet, true)
	p.got([]*mvccpb.KeyValue{{Key: []byte("k")}})
	if p.size != firstPage/2 || p.tries != 0 {
		t.Errorf("after a page that came it asks for %d, after %d tries; want %d, 0", p.size, p.tries, firstPage/2)
	}
}

// A page of large values makes the next pages small, but not the rest of the listing.
func TestPagesGrowAgain(t *testing.T) {
	t.Parallel()
	p := newPager()
	for range 10 {
		p.smaller()
	}
	if p.size != 1 {
		t.Errorf("the smallest page has %d pairs, want 1", p.size)
	}
	page := []*mvccpb.KeyValue{{Value: make([]byte, 10<<10)}}
	for range 10 {
		p.got(page)
	}
	if want := int64(pageBytes / len(page[0].Value)); p.size != want {
		t.Errorf("after ten pages of small values it asks for %d, want %d", p.size, want)
	}
}

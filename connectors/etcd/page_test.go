package etcd

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

func TestNextPage(t *testing.T) {
	tests := []struct {
		pairs, bytes int // of the page before
		want         int64
	}{
		{1000, 200, 10485},
		{1000, 1, mostPairs},
		{100, 1 << 20, 2},
		{1, 8 << 20, 1},
	}
	for _, tt := range tests {
		page := make([]*mvccpb.KeyValue, tt.pairs)
		for i := range page {
			page[i] = &mvccpb.KeyValue{Value: make([]byte, tt.bytes)}
		}
		if got := nextPage(page); got != tt.want {
			t.Errorf("after %d pairs of %d bytes %d, want %d", tt.pairs, tt.bytes, got, tt.want)
		}
	}
}

package etcd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// TestCursor goes through sets of keys as etcd answers pages of them, with the keys that it counts.
func TestCursor(t *testing.T) {
	t.Parallel()
	draw.Each(t, goThroughPages)
}

func goThroughPages(t *testing.T, seed uint64) {
	routes, words := make([]string, 0, 50_000), make([]string, 0, 20_000)
	for i := range cap(routes) {
		routes = append(routes, fmt.Sprintf("/vnf-agent/a/config/vpp/v2/route/if%d/vrf/0/dst/10.%d.%d.%d/32", i%500, i>>16, i>>8&255, i&255))
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for range cap(words) {
		word := make([]byte, 1+random.IntN(8))
		for i := range word {
			word[i] = "\x00az\xfe\xff"[random.IntN(5)]
		}
		words = append(words, string(word))
	}
	for name, test := range map[string]struct {
		keys     []string
		key, end string
		size     int64
		most     float64 // of the keys that would be counted without dividing the range
	}{
		"routes":            {routes, "/vnf-agent/a/", "/vnf-agent/a0", 500, 0.4},
		"routes, all keys":  {routes, noEnd, noEnd, 500, 0.4},
		"words":             {words, noEnd, noEnd, 100, 0.5},
		"one by one":        {words[:300], noEnd, noEnd, 1, 2},
		"few":               {routes[:900], noEnd, noEnd, 500, 1},
		"none":              {nil, "/a/", "/a0", 500, 1},
		"each is the other": {[]string{"a", "a\x00", "a\x00\x00", "a\x00\x00\x00", "b"}, noEnd, noEnd, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := slices.Clone(test.keys)
			slices.Sort(keys)
			keys = slices.Compact(keys)
			c, counted, naive := newCursor(test.key, test.end), int64(0), int64(0)
			var seen []string
			for last := false; !last; {
				page := pageOf(keys, c.key, c.end(), test.size)
				if err := checkPage(page, c.key, c.end()); err != nil {
					t.Fatal(err)
				}
				for _, kv := range page.Kvs {
					seen = append(seen, string(kv.Key))
				}
				counted += page.Count
				last = c.pass(page, test.size)
			}
			if !slices.Equal(seen, keys) {
				t.Errorf("%d keys were seen of %d", len(seen), len(keys))
			}
			for left := int64(len(keys)); left > 0; left -= test.size {
				naive += left
			}
			if float64(counted) > test.most*float64(naive) {
				t.Errorf("%d keys were counted, want %v of %d", counted, test.most, naive)
			}
		})
	}
}

// pageOf returns the first page of the sorted keys of a range, as etcd does.
func pageOf(keys []string, from, end string, size int64) *clientv3.GetResponse {
	keys = keys[sort.SearchStrings(keys, from):]
	if end != noEnd {
		keys = keys[:sort.SearchStrings(keys, end)]
	}
	page := &clientv3.GetResponse{Header: &pb.ResponseHeader{Revision: 1}, Count: int64(len(keys)), More: int64(len(keys)) > size}
	for _, key := range keys[:min(int64(len(keys)), size)] {
		page.Kvs = append(page.Kvs, &mvccpb.KeyValue{Key: []byte(key)})
	}
	return page
}

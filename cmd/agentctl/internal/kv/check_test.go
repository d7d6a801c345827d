package kv

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// TestRequestsOfChecks divides pairs of several labels, with keys that are there twice.
func TestRequestsOfChecks(t *testing.T) {
	pair := func(label, name string) kvdbsync.Pair {
		return kvdbsync.Pair{Key: "/vnf-agent/" + label + "/config/linux/interfaces/v2/interface/" + name, Value: fmt.Appendf(nil, `{"name":%q}`, name)}
	}
	broken := pair("vpp1", "broken")
	broken.Value = []byte("{")
	c := newChecking([]kvdbsync.Pair{
		pair("vpp1", "a"), pair("vpp2", "a"), pair("vpp1", "b"), pair("vpp1", "a"), broken, {Key: "config/acme/x", Value: []byte("{}")}, pair("vpp2", "c"),
	})
	want := [][]int{{1, 6}, {2, 3}, {5}}
	if !slices.EqualFunc(c.requests, want, slices.Equal) {
		t.Errorf("requests %v, want %v", c.requests, want)
	}
	if c.wrong[4] == nil {
		t.Error("a value that is no JSON is not wrong")
	}

	var many []kvdbsync.Pair
	for i := range mostChecked + 1 {
		many = append(many, pair("vpp1", fmt.Sprint("a", i)), pair("vpp2", "b"))
	}
	var sizes []int
	for _, r := range newChecking(many).requests {
		sizes = append(sizes, len(r))
	}
	if !slices.Equal(sizes, []int{mostChecked, 1, 1}) {
		t.Errorf("requests of %v pairs, want %d, 1 and 1", sizes, mostChecked)
	}
}

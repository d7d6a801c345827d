package retry

import (
	"iter"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// Failed returns the sorted keys of the nodes that have failed and whose verbs have returned:
// those with one of these keys (none: all) and the nodes derived from them.
func Failed(nodes iter.Seq[*graph.Node], keys []string) (failed []string) {
	for n := range nodes {
		if n.State() == graph.Failed && !n.Hung() && (len(keys) == 0 || isBelow(n, keys)) {
			failed = append(failed, n.Key())
		}
	}
	slices.Sort(failed)
	return failed
}

// isBelow reports whether n or one of its bases has one of these keys.
func isBelow(n *graph.Node, keys []string) bool {
	for ; n != nil; n = n.Base() {
		if slices.Contains(keys, n.Key()) {
			return true
		}
	}
	return false
}

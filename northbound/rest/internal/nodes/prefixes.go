package nodes

import (
	"fmt"
	"slices"
	"strings"
)

// All accepts every key.
func All(string) bool { return true }

// maxPrefixes is the number of prefixes in one request.
const maxPrefixes = 1000

// Under returns a filter for keys with one of the prefixes; without prefixes it accepts all
// keys. The filter runs for each operation in the history, so its cost
// must not grow with the number of prefixes: it searches in a sorted list.
func Under(prefixes []string) (keep func(key string) bool, err error) {
	if n := len(prefixes); n > maxPrefixes {
		return nil, fmt.Errorf("argument prefix is given %d times; at most %d are allowed", n, maxPrefixes)
	}
	if len(prefixes) == 0 {
		return All, nil
	}
	sorted := slices.Sorted(slices.Values(prefixes))
	apart := sorted[:1] // none of them is a prefix of another, so one comparison is enough
	for _, p := range sorted[1:] {
		if !strings.HasPrefix(p, apart[len(apart)-1]) {
			apart = append(apart, p)
		}
	}
	return func(key string) bool {
		i, found := slices.BinarySearch(apart, key)
		return found || i > 0 && strings.HasPrefix(key, apart[i-1])
	}, nil
}

package etcd

import (
	"os"
	"regexp"
	"slices"

	"github.com/keyplane/keyplane/kvdbsync"
)

// expanding emits batches with the environment put into their values.
func expanding(emit func(kvdbsync.Batch) error) func(kvdbsync.Batch) error {
	variable := regexp.MustCompile(`\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})`)
	return func(b kvdbsync.Batch) error {
		b.Events = slices.Clone(b.Events)
		for i, e := range b.Events {
			if e.Value != nil {
				b.Events[i].Value = expand(e.Value, variable, os.LookupEnv)
			}
		}
		return emit(b)
	}
}

// expand leaves a variable that is not set as it stands, where it can be seen.
func expand(value []byte, variable *regexp.Regexp, lookup func(string) (string, bool)) []byte {
	if !variable.Match(value) {
		return value
	}
	return variable.ReplaceAllFunc(value, func(found []byte) []byte {
		name := string(found[1:])
		if name[0] == '{' {
			name = name[1 : len(name)-1]
		}
		if text, ok := lookup(name); ok {
			return []byte(text)
		}
		return found
	})
}

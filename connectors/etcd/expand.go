package etcd

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// expanding returns an emit that first replaces the allowed environment variables in
// values.
func expanding(allowed []string, emit func(kvdbsync.Batch) error) func(kvdbsync.Batch) error {
	lookup := func(name string) (string, bool) {
		if !allows(allowed, name) {
			return "", false
		}
		return os.LookupEnv(name)
	}
	variable := regexp.MustCompile(`\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})`)
	return func(b kvdbsync.Batch) error {
		b.Events = slices.Clone(b.Events)
		for i, e := range b.Events {
			if e.Value != nil {
				b.Events[i].Value = expand(e.Value, variable, lookup)
			}
		}
		return emit(b)
	}
}

// allows reports whether a list contains name. Elements of the list may end with *.
func allows(list []string, name string) bool {
	return slices.ContainsFunc(list, func(one string) bool {
		prefix, any := strings.CutSuffix(one, "*")
		return one == name || any && strings.HasPrefix(name, prefix)
	})
}

// expand leaves a variable unchanged if it is not set or not allowed, so that people can
// see it.
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

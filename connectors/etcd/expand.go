package etcd

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// expanding returns an emit that first replaces the allowed environment variables in
// values. A value that becomes larger than the bounds allow has an error instead: two bytes
// of a value can name a variable of kilobytes, millions of times.
func expanding(allowed []string, bounds kvdbsync.Bounds, emit func(kvdbsync.Batch) error) func(kvdbsync.Batch) error {
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
			if e.Value == nil {
				continue
			}
			value, err := expand(e.Value, variable, lookup, bounds.WithDefaults())
			if err != nil {
				value, err = nil, fmt.Errorf("replacing environment variables: %w", err)
			}
			b.Events[i].Value, b.Events[i].Err = value, err
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
// see it. It stops as soon as the result exceeds the bounds.
func expand(value []byte, variable *regexp.Regexp, lookup func(string) (string, bool), bounds kvdbsync.Bounds) ([]byte, error) {
	at := variable.FindIndex(value)
	if at == nil {
		return value, nil
	}
	out := make([]byte, 0, len(value))
	for rest := value; ; at = variable.FindIndex(rest) {
		if at == nil {
			out = append(out, rest...)
			return out, bounds.CheckValue(int64(len(out)))
		}
		found := string(rest[at[0]:at[1]])
		out = append(out, rest[:at[0]]...)
		text, ok := lookup(strings.Trim(found, "${}"))
		if !ok {
			text = found
		}
		out = append(out, text...)
		if err := bounds.CheckValue(int64(len(out))); err != nil {
			return nil, err
		}
		rest = rest[at[1]:]
	}
}

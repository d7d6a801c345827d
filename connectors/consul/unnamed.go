package consul

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/keyplane/keyplane/internal/printable"
)

// An unnamed counts the pairs of an answer whose keys cannot be told. Consul takes keys that are
// not UTF-8, but in its answers each wrong byte is U+FFFD. So such a key cannot be read, changed or
// told from others. No item has one: the names in values are UTF-8.
type unnamed struct {
	pairs int
	first string // as Consul shows it, or its beginning
}

// isUnnamed reports whether Consul does not tell the key of the pair.
func (p *pair) isUnnamed() bool { return strings.ContainsRune(p.Key, utf8.RuneError) }

// note counts a pair, unless it is a folder, which means nothing in any case.
func (u *unnamed) note(p *pair) {
	if p.isFolder() {
		return
	}
	if u.pairs == 0 {
		u.first = "/" + printable.Beginning(p.Key, 200)
	}
	u.pairs++
}

// problems returns the problems of the store after an answer; nil: they are those of the one before.
func (u unnamed) problems(before unnamed) []error {
	const why = "a key with bytes that are not UTF-8, for which Consul shows U+FFFD; delete it by Consul's HTTP API, with %%XX for each of these bytes"
	switch {
	case u == before:
		return nil
	case u.pairs == 0:
		return []error{}
	case u.pairs == 1:
		return []error{fmt.Errorf("%q is ignored: "+why, u.first)}
	}
	return []error{fmt.Errorf("%d keys are ignored, such as %q: "+why, u.pairs, u.first)}
}

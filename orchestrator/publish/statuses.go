package publish

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// A statusIndex holds the latest status of every value by key, and the relation of
// base and derived values.
type statusIndex map[string]*node

// A node is a value and the keys of its derived values.
type node struct {
	status  *scheduler.Status // nil: unknown or removed
	derived map[string]bool
	// problems is the number of values that are not as declared and are derived from this one,
	// through all levels. A base value may have thousands of derived values, so they are not
	// counted again after each change of one.
	problems int
}

// set records a status and returns the key of the declared value that it belongs to.
func (k statusIndex) set(st *scheduler.Status) (declared string) {
	k.forget(st.Key)
	if st.State != scheduler.Removed {
		k.at(st.Key).status = st
		if st.Base != "" {
			k.at(st.Base).add(st.Key)
			k.count(st.Base, k[st.Key].allProblems())
		}
	}
	return k.declaredKey(st)
}

// hasOtherValue reports whether a new status of a declared value is about another value than
// the status that the index has.
func (k statusIndex) hasOtherValue(st *scheduler.Status) bool {
	if st.Base != "" || !k.has(st.Key) {
		return false
	}
	was := k[st.Key].status.Desired
	return was != st.Desired && !proto.Equal(was, st.Desired)
}

// at returns the node of a key, new if needed. A derived value may arrive before its
// base value.
func (k statusIndex) at(key string) *node {
	n := k[key]
	if n == nil {
		n = &node{}
		k[key] = n
	}
	return n
}

// add records a derived value.
func (n *node) add(part string) {
	if n.derived == nil {
		n.derived = map[string]bool{}
	}
	n.derived[part] = true
}

// forget removes the status of a value. Its derived values have statuses of their
// own, which the scheduler removes.
func (k statusIndex) forget(key string) {
	if !k.has(key) {
		return
	}
	n := k[key]
	if base := n.status.Base; base != "" {
		k.count(base, -n.allProblems())
		delete(k[base].derived, key)
		k.drop(base) // it may have been removed first
	}
	n.status = nil
	k.drop(key)
}

// count adds n problems of a derived value to its base value, and to the base values of that one.
// The base value of one without a status is not known yet; set adds the problems there later.
func (k statusIndex) count(base string, n int) {
	for base != "" {
		at := k[base]
		at.problems += n
		if at.status == nil {
			return
		}
		base = at.status.Base
	}
}

// allProblems returns the number of problems of a value with a status and of all its derived
// values.
func (n *node) allProblems() int {
	if isProblem(n.status.State) {
		return n.problems + 1
	}
	return n.problems
}

// drop removes a node without status and derived values.
func (k statusIndex) drop(key string) {
	if n := k[key]; n.status == nil && len(n.derived) == 0 {
		delete(k, key)
	}
}

// declaredKey returns the key of the base value of st, through all levels of
// derivation.
func (k statusIndex) declaredKey(st *scheduler.Status) string {
	for st.Base != "" {
		base := k[st.Base]
		if base == nil || base.status == nil {
			return st.Base
		}
		st = base.status
	}
	return st.Key
}

// has reports whether the value has a status.
func (k statusIndex) has(key string) bool { return k[key] != nil && k[key].status != nil }

// status returns the status of a declared value, with the problems of its derived
// values as details. It is nil for an unknown value.
func (k statusIndex) status(key string) *status {
	if !k.has(key) {
		return nil
	}
	n := k[key]
	out := statusOf(n.status)
	out.Details = append(out.Details, k.problemLines(n)...)
	return out
}

// problemLines returns the derived values of n that are not as declared, sorted by
// key.
func (k statusIndex) problemLines(n *node) (lines []string) {
	if n.problems == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(n.derived)) {
		part := k[key]
		if isProblem(part.status.State) {
			lines = append(lines, statusOf(part.status).line())
		}
		lines = append(lines, k.problemLines(part)...)
	}
	return lines
}

// hasProblem reports whether a value or one of its derived values is not as
// declared.
func (k statusIndex) hasProblem(key string) bool {
	return k.has(key) && k[key].allProblems() > 0
}

// isProblem reports whether a value with this state is not as declared.
func isProblem(s scheduler.State) bool {
	switch s {
	case scheduler.Configured, scheduler.Obtained, scheduler.Discovered:
		return false
	default:
		return true
	}
}

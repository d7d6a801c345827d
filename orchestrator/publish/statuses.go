package publish

import (
	"maps"
	"slices"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// known is the newest status of every value there is, by key.
type statusIndex map[string]*node

// A node is a value, and the keys of what is derived from it.
type node struct {
	status  *scheduler.Status // nil: not known, or no longer
	derived map[string]bool
}

// set takes over a status, and returns the key of the declared value it is about.
func (k statusIndex) set(st *scheduler.Status) (declared string) {
	k.forget(st.Key)
	if st.State != kvscheduler.ValueState_REMOVED {
		k.at(st.Key).status = st
		if st.Base != "" {
			k.at(st.Base).add(st.Key)
		}
	}
	return k.declaredKey(st)
}

func (k statusIndex) at(key string) *node {
	n := k[key]
	if n == nil {
		n = &node{}
		k[key] = n
	}
	return n
}

func (n *node) add(part string) {
	if n.derived == nil {
		n.derived = map[string]bool{}
	}
	n.derived[part] = true
}

// forget takes out what was known of a value. Its parts have a status each, which
// the scheduler tells by itself.
func (k statusIndex) forget(key string) {
	if !k.has(key) {
		return
	}
	n := k[key]
	if base := n.status.Base; base != "" {
		delete(k[base].derived, key)

	}
	n.status = nil
	k.drop(key)
}

// drop removes a node that says nothing.
func (k statusIndex) drop(key string) {
	if n := k[key]; n.status == nil && len(n.derived) == 0 {
		delete(k, key)
	}
}

// declared is the key of the value that st is of, or is derived from in the end.
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

func (k statusIndex) has(key string) bool { return k[key] != nil && k[key].status != nil }

// status is that of a declared value, with what its derived values lack as
// further details; nil: there is no such value.
func (k statusIndex) status(key string) *status {
	if !k.has(key) {
		return nil
	}
	n := k[key]
	out := statusOf(n.status)
	out.Details = append(out.Details, k.problemLines(n)...)
	return out
}

// lacking tells, sorted, which of the values derived from n are not as declared.
func (k statusIndex) problemLines(n *node) (lines []string) {
	for _, key := range slices.Sorted(maps.Keys(n.derived)) {
		part := k[key]
		if isProblem(part.status.State) {
			lines = append(lines, statusOf(part.status).line())
		}
		lines = append(lines, k.problemLines(part)...)
	}
	return lines
}

// troubled tells whether a value, or one derived from it, is not as declared.
func (k statusIndex) hasProblem(key string) bool {
	if !k.has(key) {
		return false
	}
	n := k[key]
	return isProblem(n.status.State) || len(k.problemLines(n)) > 0
}

func isProblem(s scheduler.State) bool {
	switch s {
	case kvscheduler.ValueState_CONFIGURED, kvscheduler.ValueState_OBTAINED, kvscheduler.ValueState_DISCOVERED:
		return false
	}
	return true
}

package graph

import "github.com/keyplane/keyplane/scheduler/internal/value"

// State compares the desired and the actual value of a node. See the table in the package
// documentation.
type State uint8

const (
	Nonexistent State = iota
	Configured
	Pending
	Missing
	Discovered
	Obtained
	Failed
	Rejected
)

// State returns the state of n.
func (n *Node) State() State {
	switch {
	case n.errs.Rejection() != nil, n.desired != nil && n.desired.Err() != nil:
		return Rejected
	case n.errs.Failure() != nil:
		return Failed
	case n.LosesClaim():
		return Rejected
	case !n.isVisible():
		return Nonexistent
	case n.foreign:
		return Obtained
	case n.kindUnknown() && (n.Unknown() || n.desired != n.actual):
		return Pending
	case n.desired == nil:
		return Discovered
	case n.desired == n.actual:
		return Configured
	case n.missing:
		return Missing
	}
	return Pending
}

// Unmet are the unmet dependencies of the desired value.
func (n *Node) Unmet() (out []value.Dep) {
	if n.kindUnknown() && n.State() == Pending {
		out = append(out, value.Dep{Label: n.knowledge().Why()})
	}
	if n.desired == nil || n.desired == n.actual {
		return out
	}
	if n.Held() {
		out = append(out, value.Dep{Label: "the end of operations or of a read-back of its connection"})
	}
	if n.Hung() {
		out = append(out, value.Dep{Label: "the end of an operation that is still running"})
	}
	for _, e := range n.desired.edges() {
		if !e.met && e.dep != nil {
			out = append(out, *e.dep)
		}
	}
	for _, c := range n.desired.claims() {
		if c.holder != nil && !c.lost {
			out = append(out, value.Dep{Label: c.Label(), Key: c.holder.key})
		}
	}
	return out
}

// Err is why the newest desired value was refused, or why the last operation failed.
func (n *Node) Err() error {
	switch {
	case n.errs.Rejection() != nil:
		return n.errs.Rejection()
	case n.errs.Failure() != nil:
		return n.errs.Failure()
	case n.desired == nil || n.desired.Err() != nil || n.desired.ClaimSet() == nil:
		return n.desired.err()
	}
	return n.claimError()
}

// isVisible reports that people see n: it is declared, or it exists, or its deletion waits. A value that nobody declares
// is not seen while nobody knows whether it still exists.
func (n *Node) isVisible() bool {
	switch {
	case n.desired != nil:
		return true
	case n.actual == nil:
		return false
	}
	return !n.Unknown() || n.removable && !n.foreign
}

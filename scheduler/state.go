package scheduler

import "strconv"

// A State is the state of a value; the package documentation has a diagram. The numbers are
// those of the enum ValueState in proto/ligato/kvscheduler.
type State int32

// The states of a value.
const (
	Nonexistent   State = iota // no value is known under the key
	Missing                    // the actual value vanished by itself and is not back yet
	Unimplemented              // no descriptor has the key, or the system lacks a feature that the value needs
	Removed                    // the value was removed as desired; only a Watch reports this
	Configured                 // the actual value is as desired
	Obtained                   // the actual value is not ours: it was observed, or is Foreign
	Discovered                 // the actual value is ours, but not desired
	Pending                    // a dependency or the connection is missing; see Status.Details
	Invalid                    // Validate or a verb refuses the desired value, or another value holds its resource
	Failed                     // a verb failed, and is not called again by itself
	Retrying                   // a verb failed, and is called again after a back-off
)

// String returns the name as people see it: "CONFIGURED".
func (s State) String() string {
	names := [...]string{
		"NONEXISTENT", "MISSING", "UNIMPLEMENTED", "REMOVED", "CONFIGURED", "OBTAINED", "DISCOVERED",
		"PENDING", "INVALID", "FAILED", "RETRYING",
	}
	return nameOf(names[:], int32(s), "state")
}

// A Verb is the kind of an operation. The numbers are those of the enum TxnOperation in
// proto/ligato/kvscheduler. The zero Verb means that there was no operation.
type Verb int32

// The kinds of operations.
const (
	Validate Verb = iota + 1 // the newest intent was refused; no verb of a descriptor was called
	Create
	Update
	Delete
)

// String returns the name as people see it: "CREATE".
func (v Verb) String() string {
	return nameOf([]string{"UNDEFINED", "VALIDATE", "CREATE", "UPDATE", "DELETE"}, int32(v), "verb")
}

// nameOf returns the name of a number; if there is none, a text such as "state 17".
func nameOf(names []string, n int32, kind string) string {
	if n < 0 || int(n) >= len(names) {
		return kind + " " + strconv.Itoa(int(n))
	}
	return names[n]
}

package wire

import "time"

// Drift is the difference between the system and the configured values.
type Drift struct {
	// The period of the reading. A change within it may look like drift.
	Start, Stop time.Time
	Read        int // number of values that were read back
	Count       int // of Values
	// Sorted by key.
	Values []Drifted
	// Unknown are the kinds that have values and were left out, because they are unknown.
	Unknown     []Unknown `json:",omitempty"`
	NotReadBack []string  `json:",omitempty"` // errors of descriptors that could not be read back
}

// Drifted is a value that differs.
type Drifted struct {
	Key, Descriptor string
	Kind            string // missing, differs or unexpected
	// State is RETRYING or FAILED if the agent knows of the difference: it could not repair it.
	State string `json:",omitempty"`
	// Desired is null for an unexpected value, and Actual for a missing one. Secrets are
	// redacted.
	Desired *Message `json:",omitempty"`
	Actual  *Message `json:",omitempty"`
}

package wire

import "time"

// Drift is the difference between the system and the configured values.
type Drift struct {
	Start, Stop time.Time
	Read        int // number of values that were read back
	Count       int // of Values
	Values      []Drifted
	NotReadBack []string `json:",omitempty"` // errors of descriptors that could not be read back
}

// Drifted is a value that differs.
type Drifted struct {
	Key, Descriptor string
	Kind            string   // missing, differs or unexpected
	Desired         *Message `json:",omitempty"`
	Actual          *Message `json:",omitempty"`
}

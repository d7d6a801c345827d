package wire

import "time"

// A Trial is a change of declared values that is taken back at its end, unless it is confirmed.
type Trial struct {
	// Source is the data source that was changed. It takes no other change meanwhile.
	Source string
	Begun  time.Time
	// Deadline is the end. Zero: the values are still being applied.
	Deadline time.Time `json:",omitzero"`
	// Keys are the keys that were changed, sorted.
	Keys []string
}

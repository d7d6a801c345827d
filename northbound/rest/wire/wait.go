package wire

import (
	"encoding/json"
	"time"
)

// A Wait asks the agent to answer as soon as values have a state.
type Wait struct {
	// State is the name of a state in any case, such as configured or removed. CONFIGURED includes
	// OBTAINED and the derived values, and REMOVED means that no such value exists. Defaults to
	// configured.
	State string `json:",omitempty"`
	// Keys name values; a key may have the agent's own prefix. Models are names of models: all of
	// their values, and All all values.
	Keys   []string `json:",omitempty"`
	Models []string `json:",omitempty"`
	All    bool     `json:",omitempty"`
	// Values are values whose content must be in effect, too, whatever State is: a null value
	// means that nothing is declared under its key.
	Values []WaitValue `json:",omitempty"`
	// Document has more of them, in YAML or JSON, in the forms of PUT /configuration.
	Document string `json:",omitempty"`
	// Since is Waited.Since of an earlier answer: the wait goes on. Defaults to now.
	Since time.Time `json:",omitzero"`
	// Milliseconds bounds the wait. 1 to 60000; defaults to 30000.
	Milliseconds int64 `json:",omitempty"`
}

// A WaitValue is the expected content of a key.
type WaitValue struct {
	Key   string
	Value json.RawMessage
}

// A Waited is the result of a Wait.
type Waited struct {
	// Done means that all values have the state.
	Done bool
	// Hopeless means that a value is in a state that does not change by itself: INVALID, FAILED or
	// UNIMPLEMENTED. Waiting ended for this reason.
	Hopeless bool `json:",omitempty"`
	// Count is the number of values that the wait is about.
	Count int
	// Missing are the values that lack the state, at most 1000.
	Missing []ValueStatus `json:",omitempty"`
	// MissingCount is the number of all of them.
	MissingCount int `json:",omitempty"`
	// Incomplete are the sources that may have values that are not in effect: the agent has not
	// read their stores again since the wait began. A wait for keys needs only the stores that are
	// connected, a wait for all values or those of a model needs all stores. A wait for Values or a
	// Document alone needs none.
	Incomplete []string `json:",omitempty"`
	// Since is when the wait began, by the agent's clock.
	Since time.Time `json:",omitzero"`
}

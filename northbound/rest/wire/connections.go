package wire

import "time"

// A Connection is a link to a system that the agent programs.
type Connection struct {
	Name string
	// State is LOST, GONE, READING or READY. Of a connection that is LOST nobody knows whether its values exist;
	// GONE means that an operator has said that they do not. READING means that they are being read back.
	State string
	Since time.Time // from which it has the state
	Error string    `json:",omitempty"` // why it is lost
	// Unknown are the kinds of values of which nobody knows which exist, sorted by descriptor.
	Unknown []Unknown `json:",omitempty"`
}

// Unknown is a kind of values of which nobody knows which exist. The agent makes, changes and removes none of them.
type Unknown struct {
	Descriptor string
	Reason     string
	Since      time.Time
}

package wire

import "time"

// A Source is the state of one source of declared values. Sources are listed by
// priority, the highest first.
type Source struct {
	Name string
	// Priority decides about keys that several sources have: the highest one with a valid value
	// takes effect.
	Priority int
	// State is connecting, syncing, synced or lost, and Since the time of its beginning.
	State string
	Since time.Time
	// Complete means that the source has listed all its keys at least once.
	Complete bool
	// Revision is that of the store; 0 if it has none.
	Revision int64 `json:",omitempty"`
	// Keys is the number of keys in the store.
	Keys int
	// Listed is the number of keys that were listed so far, while State is syncing.
	Listed int `json:",omitempty"`

	// Refused is the number of keys with an invalid newest value.
	Refused int `json:",omitempty"`
	// Remembered is the number of keys that an earlier run has saved and the store has not
	// confirmed yet.
	Remembered int      `json:",omitempty"`
	Doubted    int      `json:",omitempty"` // keys missing from an empty listing; removed if the next listing lacks them too
	Problems   int      `json:",omitempty"` // problems of the store's content that concern no single key
	Faults     []string `json:",omitempty"` // texts of the first 20 problems

	Error     string `json:",omitempty"` // reason why it is not synced
	Failures  int    `json:",omitempty"` // failed attempts since it was synced
	LastError string `json:",omitempty"` // reason of the last interruption
	// Zero: there was no interruption since the start.
	LastErrorAt time.Time     `json:",omitzero"`
	Waiting     int           `json:",omitempty"` // keys with changes that are not processed yet
	Lag         time.Duration `json:",omitempty"` // age of the oldest of them, in ns
}

// A Declaration is the value of one source for a key.
type Declaration struct {
	Key        string
	Source     string
	Priority   int
	State      string // valid, refused, unimplemented
	Wins       bool   // takes effect; of a refused value, the last valid one does
	Remembered bool   `json:",omitempty"`
	Doubted    bool   `json:",omitempty"` // missing from an empty listing; removed if the next listing lacks it too
	Error      string `json:",omitempty"` // reason why the latest value is refused
}

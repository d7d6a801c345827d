package wire

import "time"

// A Source is the state of one source of declared values. Sources are listed by
// priority, the highest first.
type Source struct {
	Name     string
	Priority int    // the source with the highest priority and a valid value takes effect
	State    string // connecting, syncing, synced, lost
	Since    time.Time
	Complete bool  // it has listed all its keys at least once
	Revision int64 `json:",omitempty"` // of the store
	Keys     int   // number of keys in the store
	Listed   int   `json:",omitempty"` // keys listed so far, while State is syncing

	Refused    int      `json:",omitempty"` // keys with an invalid latest value
	Remembered int      `json:",omitempty"` // keys saved by an earlier run that the store has not confirmed yet
	Doubted    int      `json:",omitempty"` // keys missing from an empty listing; removed if the next listing lacks them too
	Problems   int      `json:",omitempty"` // problems of the store's content that concern no single key
	Faults     []string `json:",omitempty"` // texts of the first 20 problems

	Error       string        `json:",omitempty"` // reason why it is not synced
	Failures    int           `json:",omitempty"` // failed attempts since it was synced
	LastError   string        `json:",omitempty"` // reason of the last interruption
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

package wire

import "time"

// A Source is the state of one source of declared values. Sources are listed by
// priority, the highest first.
type Source struct {
	Name string
	// Priority decides about keys that several sources have: the highest one with a valid value
	// takes effect.
	Priority int
	// State is connecting, syncing, synced, lost, withheld or NotConfigured, and Since the time of its beginning.
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
	Remembered int `json:",omitempty"`
	// Doubted is the number of keys that are missing but may not have been deleted. A listing after the
	// grace time decides; of a source that is not configured, POST /sources/NAME/forget removes them.
	Doubted  int      `json:",omitempty"`
	Problems int      `json:",omitempty"` // problems of the store's content that concern no single key
	Faults   []string `json:",omitempty"` // texts of the first 20 problems

	Error     string `json:",omitempty"` // reason why it is not synced, or withheld
	Failures  int    `json:",omitempty"` // failed attempts since it was synced
	LastError string `json:",omitempty"` // reason of the last interruption
	// Zero: there was no interruption since the start.
	LastErrorAt time.Time     `json:",omitzero"`
	Waiting     int           `json:",omitempty"` // keys with changes that are not processed yet
	Lag         time.Duration `json:",omitempty"` // age of the oldest of them, in ns
}

// NotConfigured is the state of a source that held keys at the last run of the agent, and has no
// configuration now. Its saved values stay in effect.
const NotConfigured = "not configured"

// A Declaration is the value of one source for a key.
type Declaration struct {
	Key        string
	Source     string
	Writer     string // who wrote the latest value, as in the history: "etcd, revision 57"
	Priority   int
	State      string // valid, refused, unimplemented
	Wins       bool   // takes effect; of a refused value, the last valid one does
	Remembered bool   `json:",omitempty"`
	Doubted    bool   `json:",omitempty"` // missing from an empty listing; removed if the next listing lacks it too
	Error      string `json:",omitempty"` // reason why the latest value is refused
}

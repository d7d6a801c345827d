package wire

import "time"

// A Source is one of the sources of what is declared, the highest first.
type Source struct {
	Name     string
	Priority int    // of a key that several have, the highest with a valid value counts
	State    string // connecting, syncing, synced, lost
	Since    time.Time
	Complete bool  // it has shown all that it has, at least once
	Revision int64 `json:",omitempty"` // of the store
	Keys     int   // that the store holds
	Listed   int   `json:",omitempty"` // keys of the listing under way that have come so far, while State is syncing

	Refused    int      `json:",omitempty"` // keys whose newest value is not followed
	Remembered int      `json:",omitempty"` // keys of an earlier run, until the store is there
	Doubted    int      `json:",omitempty"` // keys that are missing, and go if a listing after the grace time does not show them, either
	Problems   int      `json:",omitempty"` // faults of the store's content that belong to no key
	Faults     []string `json:",omitempty"` // the first 20 of these, as texts

	Error       string        `json:",omitempty"` // why it is not synced
	Failures    int           `json:",omitempty"` // attempts since it was
	LastError   string        `json:",omitempty"` // the last time that it was not
	LastErrorAt time.Time     `json:",omitzero"`
	Waiting     int           `json:",omitempty"` // keys with changes that have not been looked at
	Lag         time.Duration `json:",omitempty"` // for how long, in ns
}

// A Claim is what a source has under a key.
type Declaration struct {
	Key        string
	Source     string
	Priority   int
	State      string // valid, refused, unimplemented
	Wins       bool   // its value counts; of a refused one that is what was valid before
	Remembered bool   `json:",omitempty"`
	Doubted    bool   `json:",omitempty"` // the key is missing, and goes if a listing after the grace time does not show it, either
	Error      string `json:",omitempty"` // why the newest value is not followed
}

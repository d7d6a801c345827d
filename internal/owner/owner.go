// Package owner ensures that a label has one agent. Three mechanisms enforce it, each for
// cases that the others do not cover:
//
//	folder, err := owner.OpenFolder(dir, label, log) // the state folder: a lock, and the installation's id
//	self := owner.Self(label, folder.Installation)
//	folder.Name(self)
//	guard, err := owner.Listen(ctx, self, log) // the network namespace: a name in the kernel
//	keeper := owner.NewKeeper(owner.Options{Store: "etcd", Leaser: etcd, Key: owner.Key(root), Self: self})
//	source := kvdbsync.NewSource(kvdbsync.Options{Withhold: keeper.Withhold, ...}) // a store: a key that vanishes with its holder
//	go guard.Run(ctx)
//	err = keeper.Run(ctx)
//
// The first two decide on this host. They return a *TakenError when another living agent has the
// label, and the agent ends. A store decides only about what comes from it: whoever may write there
// could otherwise stop the agent. An unavailable mechanism (no folder, a store that is down or
// read-only) does not stop the agent.
//
// liveness.go decides whether a recorded holder is dead, and is pure. A Keeper is owned by the
// goroutine that calls Run; any goroutine may call Withhold, and use its Publisher. Tests: dead with a table, the
// Keeper in synthetic time with a store in memory, the real stores in internal/faults.
package owner

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/keyplane/keyplane/internal/bootid"
	"github.com/keyplane/keyplane/kvdbsync"
)

// ErrTaken means that another agent owns the label.
var ErrTaken = kvdbsync.ErrTaken

// A TakenError names the agent that owns the label, and the place of that record.
type TakenError struct {
	Holder Holder
	Where  string
}

// Error names the other agent, and two remedies.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%v: label %s belongs to %v, as %s says. Stop that agent, or give this one another -microservice-label",
		ErrTaken, e.Holder.Label, e.Holder, e.Where)
}

// Unwrap returns ErrTaken.
func (e *TakenError) Unwrap() error { return ErrTaken }

// A Holder is an agent that owns or claims a label. The lock file and the stores contain
// it as JSON.
type Holder struct {
	Label        string    `json:"label"`
	Installation string    `json:"installation"`
	Host         string    `json:"host"`
	PID          int       `json:"pid"`
	Since        time.Time `json:"since"`
	// Life is different for each process.
	Life string `json:"life"`
	// Boot, Space and Started identify a process: the boot of the machine, the PID
	// namespace, and the start of the process.
	Boot    string `json:"boot_id,omitempty"`
	Space   string `json:"pid_namespace,omitempty"`
	Started uint64 `json:"started,omitempty"`
	// Term counts the leases of one life in one store.
	Term int `json:"term,omitempty"`
	// Expires is the number of seconds from the agent's death to the end of its lease.
	Expires int `json:"expires,omitempty"`
}

// String describes the agent by all that is known of it.
func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	out := fmt.Sprintf("the agent with pid %d", h.PID)
	if h.Host != "" {
		out += " on host " + h.Host
	}
	if h.Installation != "" {
		out += ", installation " + h.Installation
	}
	if !h.Since.IsZero() {
		out += ", since " + h.Since.Format(time.RFC3339)
	}
	return out
}

// Self returns this process as the holder of a label.
func Self(label, installation string) Holder {
	host, _ := os.Hostname() // without a host name the other fields are enough
	space, _ := os.Readlink("/proc/self/ns/pid")
	started, _ := startOf(os.Getpid())
	return Holder{
		Label: label, Installation: installation, Host: host, PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second),
		Life: NewID(), Boot: bootid.Read(), Space: space, Started: started,
	}
}

// NewID returns 16 random hexadecimal digits.
func NewID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Key returns the key of the label's holder in a store. root is the prefix of the label's
// keys: "/vnf-agent/vpp1/".
func Key(root string) string { return root + "owner" }

// bytes returns the holder as the store has it.
func (h Holder) bytes() []byte {
	out, _ := json.Marshal(h) // a Holder always has a JSON form
	return out
}

// longestRecord bounds the record of a holder in bytes. Logs and states name the holder, so a record has no room for
// megabytes that anybody may write into a store.
const longestRecord = 4 << 10

// parse is the inverse of bytes; ok is false for any other text.
func parse(b []byte) (h Holder, ok bool) {
	if len(b) > longestRecord {
		return Holder{}, false
	}
	err := json.Unmarshal(b, &h)
	return h, err == nil && h.Life != ""
}

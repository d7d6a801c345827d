// Package conformance tests the contract that every connector has with a source. It is
// test code: no product package imports it.
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(t *testing.T) conformance.Harness {
//			return conformance.Harness{Connector: ..., Put: ..., Delete: ...}
//		})
//	}
//
// The suite tests the watch of every connector; also writes and sessions, if the harness has a
// Writer and a Publisher. It changes the store with the store's own client, if there is one, so
// that a mistake in our code for writing hides nothing. Each case gets a harness with an empty
// prefix of its own. The tests of the suite itself use Memory, without and with faults.
package conformance

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Harness is a connector and the means to change its store. Connector, Put and Delete
// are required. A case that needs another field is skipped without it.
type Harness struct {
	Connector kvdbsync.Connector
	// Prefix is where the case works; the store holds nothing below it or beside
	// it. It ends with "/". Defaults to "/vnf-agent/vpp1/".
	Prefix string

	Put    func(key string, value []byte)
	Delete func(key string)
	// Txn makes several changes at once; a nil Value deletes.
	Txn func(events []kvdbsync.Event)
	// Cut interrupts the running watches in the worst way that the store permits, calls
	// during, which changes the store, and lets watches begin again.
	Cut func(during func())

	// Writer writes the store that Connector watches.
	Writer kvdbsync.Writer
	// Refused is a change that the store cannot make, such as a key that is too long or a
	// value that is too large.
	Refused kvdbsync.Pair

	// Publisher begins sessions in the same store. It needs Get.
	Publisher kvdbsync.Publisher
	// Get reads the store by its own means; nil: the key is not there.
	Get func(key string) []byte
	// TTL is the ttl of sessions. Defaults to 1 second.
	TTL time.Duration
	// Sever keeps sessions from their store, as if their holder were dead, until
	// restore is called. A store whose keys need no holder has none.
	Sever func() (restore func())
	// Revoke ends all sessions at the store, as its administrator can.
	Revoke func()

	// Same compares a value with the put one. Defaults to bytes.Equal. A store that people
	// write as text compares the content.
	Same func(got, put []byte) bool
	// JSONOnly says that the store holds JSON values and no other bytes.
	JSONOnly bool
	// LargeValue is the size in bytes of a value that must get through. Defaults to 1 MiB.
	LargeValue int
	// ManyKeys is the number of keys in the largest listing. Defaults to 10,000.
	ManyKeys int
	// Patience limits the time until a change is seen. Defaults to 5 minutes, for busy
	// machines.
	Patience time.Duration
}

// patience is the time limit of each wait, also on a busy machine.
const patience = 5 * time.Minute

// withDefaults returns h with the documented defaults.
func (h Harness) withDefaults() Harness {
	if h.Prefix == "" {
		h.Prefix = "/vnf-agent/vpp1/"
	}
	if h.Same == nil {
		h.Same = bytes.Equal
	}
	if h.LargeValue == 0 {
		h.LargeValue = 1 << 20
	}
	if h.ManyKeys == 0 {
		h.ManyKeys = 10_000
	}
	if h.TTL == 0 {
		h.TTL = time.Second
	}
	if h.Patience == 0 {
		h.Patience = patience
	}
	return h
}

// Run runs the suite; open returns a fresh harness for each case.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	run(t, slices.Concat(cases(), writerCases(), sessionCases()), open)
}

// RunWatch runs the part of the suite that is about watching, for a store where
// the parts need different harnesses.
func RunWatch(t *testing.T, open func(t *testing.T) Harness) { run(t, cases(), open) }

// RunWriter runs the part about writing.
func RunWriter(t *testing.T, open func(t *testing.T) Harness) { run(t, writerCases(), open) }

// RunSession runs the part about sessions.
func RunSession(t *testing.T, open func(t *testing.T) Harness) { run(t, sessionCases(), open) }

// run gives each case a harness of its own. A skip names the missing fields, so nobody
// takes a connector for complete whose harness is not.
func run(t *testing.T, cases []testCase, open func(t *testing.T) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := open(t).withDefaults()
			if missing := c.needs.missing(h); len(missing) > 0 {
				t.Skipf("the harness of this store has no %s", strings.Join(missing, " and no "))
			}
			c.run(t, h)
		})
	}
}

// A testCase is one sentence about a store. The name is the name of the test.
type testCase struct {
	name  string
	needs needs
	run   func(*testing.T, Harness)
}

// needs are the optional fields of a Harness without which a case cannot run.
type needs []string

// missing returns the needed fields that h leaves empty.
func (n needs) missing(h Harness) (fields []string) {
	_, leases := h.Publisher.(kvdbsync.Leaser)
	has := map[string]bool{
		// A deletion of an empty key is the zero Pair, so it cannot be the refused change.
		"Txn": h.Txn != nil, "Cut": h.Cut != nil, "Writer": h.Writer != nil, "Refused": h.Refused.Key != "" || h.Refused.Value != nil,
		"Browser":   h.browser() != nil,
		"Publisher": h.Publisher != nil, "Publisher with leases": leases, "Sever": h.Sever != nil, "Revoke": h.Revoke != nil,
	}
	for _, field := range n {
		if !has[field] {
			fields = append(fields, field)
		}
	}
	return fields
}

// cases lists the cases about watching, from the basic ones to failures.
func cases() []testCase {
	return []testCase{
		{"an empty store is synced", nil, emptyStore},
		{"a store has one identity", nil, oneIdentity},
		{"the first listing is complete", nil, firstListing},
		{"put, update and delete arrive in order", nil, inOrder},
		{"no change is lost after the listing", nil, losesNone},
		{"a key never goes back in time", nil, neverBack},
		{"changes of one transaction are one batch", needs{"Txn"}, atomicGroups},
		{"only the prefix is watched", nil, exactPrefix},
		{"what lies beside the prefix is named", needs{"Browser"}, namesBeside},
		{"values arrive byte by byte", nil, exactValues},
		{"a large value arrives", nil, largeValue},
		{"many keys are listed", nil, manyKeys},
		{"a second watch starts over", nil, startsOver},
		{"two watches do not disturb each other", nil, twoWatches},
		{"the end of the context ends the watch", nil, contextEnds},
		{"a reader that stops ends the watch", nil, readerStops},
		{"a gap loses nothing", needs{"Cut"}, gap},
		{"all is gone after a gap", needs{"Cut"}, gapDeletesAll},
		{"a flood of one key is one event for a slow consumer", nil, flood},
	}
}

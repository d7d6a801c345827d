package faults

import (
	"cmp"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/faults/stores"
)

// A Fault is a line of faults. Its Name is a row of docs/faults.md and a part of the name
// of the test, so it is stable.
type Fault struct {
	Name  string
	Needs stores.Ability // the store needs all of these
	OneOf stores.Ability // and at least one of these; 0: none
	Large bool           // runs only in make faults
	Grace time.Duration  // of the orchestrator; 0: that of the Scale
	// Do begins the fault and ends it, and changes the store meanwhile.
	Do func(*Run)
	// Alone replaces Do for a fault with a life of another form.
	Alone func(*Run) time.Duration
}

// faults lists all faults.
func faults() []Fault {
	var all []Fault
	for _, part := range [][]Fault{serverFaults(), cutFaults(), lineFaults(), accessFaults(), volumeFaults(), childFaults(), fileFaults(), diskFaults(), damageFaults(), ownerFaults(), doubtFaults()} {
		all = append(all, part...)
	}
	return all
}

// applies returns whether a store has the abilities that the fault needs.
func (f Fault) applies(k stores.Kind) bool {
	return f.Needs&^k.Can == 0 && (f.OneOf == 0 || f.OneOf&k.Can != 0)
}

// play plays one cell of the matrix. It returns the time of the recovery. A fault with
// Alone makes its own agent, for example one in a child process.
func play(t testing.TB, k stores.Kind, f Fault, scale Scale, seed uint64) time.Duration {
	scale.Grace = cmp.Or(f.Grace, scale.Grace)
	r := newRun(t, k, f.Needs&stores.Opened, scale, seed)
	r.Put(r.names(r.Scale.Keys)...)
	if f.Alone != nil {
		return f.Alone(r)
	}
	r.follow()
	f.Do(r)
	return r.awaitRecovery()
}

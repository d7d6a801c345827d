package faults

import (
	"cmp"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/faults/stores"
)

// A Fault is what may happen. It is a line in faults.
type Fault struct {
	Name  string
	Needs stores.Ability // all of these
	OneOf stores.Ability // and of these at least one; 0: no matter
	Large bool           // only in make faults
	Grace time.Duration  // of the orchestrator; 0: that of the scale
	// Do makes the fault happen and ends it, and changes the store as it goes.
	Do func(*Run)
	// Alone, instead of Do, is a whole life of another sort.
	Alone func(*Run) time.Duration
}

// faults is the table of them.
func faults() []Fault {
	var all []Fault
	for _, part := range [][]Fault{serverFaults(), cutFaults(), lineFaults(), accessFaults(), volumeFaults(), childFaults(), fileFaults(), diskFaults(), damageFaults(), ownerFaults(), doubtFaults()} {
		all = append(all, part...)
	}
	return all
}

// applies tells whether the fault can happen to a store.
func (f Fault) applies(k stores.Kind) bool {
	return f.Needs&^k.Can == 0 && (f.OneOf == 0 || f.OneOf&k.Can != 0)
}

// play is one cell of the matrix: how long it took until all was right again.
func play(t testing.TB, k stores.Kind, f Fault, scale Scale, seed uint64) time.Duration {
	scale.Grace = cmp.Or(f.Grace, scale.Grace)
	r := newRun(t, k, f.Needs&stores.Opened, scale, seed)
	r.Put(r.names(r.Scale.Keys)...)
	if f.Alone != nil {
		return f.Alone(r)
	}
	r.follow()
	f.Do(r)
	return r.settle()
}

package faults

import (
	"strings"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
)

// volumeFaults are large amounts of changes or keys, and invalid values.
func volumeFaults() []Fault {
	return []Fault{
		{Name: "slow consumer", Do: slowConsumer},
		{Name: "flood of one key", Do: flood},
		{Name: "a million keys", Needs: stores.Many, Large: true, Do: manyKeys},
		{Name: "keys and values at the store's limits", Do: limits},
		{Name: "binary garbage", Needs: stores.Garbage, Do: garbage},
	}
}

// slowConsumer writes while no verb runs.
func slowConsumer(r *Run) {
	release := r.Agent.South.Hold()
	r.Put(r.names(r.Scale.Pending)...)
	r.heal()
	release()
}

// flood writes one key as fast as the store accepts it, and another key now and then.
func flood(r *Run) {
	for i := range r.Scale.Flood {
		r.Put(r.name(0))
		if i%(r.Scale.Flood/10) == 0 {
			r.Put(r.name(1))
		}
	}
}

// manyKeys adds a million keys to the store of a running agent.
func manyKeys(r *Run) { r.Put(r.names(r.Scale.Many)...) }

// limits writes the largest value and the longest name that the store accepts, several
// times.
func limits(r *Run) {
	// The space that the value takes besides the text, with a text like "v1000000:".
	large := strings.Repeat("x", r.Store.MaxValue-len(stores.ValueOf("large", "v1000000:")))
	long := strings.Repeat("n", r.Store.MaxName)
	for range 3 {
		r.Write(history.Change{Key: "large", Text: r.text() + ":" + large})
		r.Write(history.Change{Key: long, Text: r.text()})
	}
	r.await("the largest")
	r.Delete(long)
	r.Write(history.Change{Key: "large", Text: r.text()})
}

// garbage writes invalid values. The valid values before them stay effective, and all
// other changes apply.
func garbage(r *Run) {
	for i, value := range []string{"\x00\xff\xfe", "", "{", `{"name":"other"}`, `[1]`, strings.Repeat("[", 10_000), "\xff{\"name\":1}"} {
		r.Write(history.Change{Key: r.name(i), Text: stores.RawMark + value})
		r.Put(r.some()...)
	}
	r.await("garbage in force")
	r.heal()
	for i := range 7 {
		r.Put(r.name(i))
	}
}

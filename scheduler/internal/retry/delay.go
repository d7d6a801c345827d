package retry

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/components"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// The errors of values that somebody else removes or changes repeatedly after the agent has written them.
var (
	errRemoved = errors.New("somebody else removes it repeatedly")
	errChanged = errors.New("somebody else changes it repeatedly")
)

// Delays delay the repair of flapping values of a graph. One goroutine owns them.
type Delays struct {
	Graph   *graph.Graph
	Retries *Schedule
	Log     *slog.Logger

	flaps    Flaps
	vanished []string // keys that were found missing since the last Apply
	changed  []string // keys that were found with other values
}

// Lost records in the graph that a value vanished by itself.
func (d *Delays) Lost(key string) {
	d.Graph.Lost(key)
	d.Vanished(key)
}

// Vanished is Lost for a value of which the graph knows it already.
func (d *Delays) Vanished(key string) { d.vanished = append(d.vanished, key) }

// Changed records that somebody else has changed a value.
func (d *Delays) Changed(key string) { d.changed = append(d.changed, key) }

// Forget forgets the losses of a value that the agent itself removes.
func (d *Delays) Forget(key string) { d.flaps.Forget(key) }

// Apply delays the repair of the flapping values among those that vanished or changed; txn is the number
// of the transaction. A value that vanished together with its dependency does not count: it waits
// for the dependency anyway. Values that depend on each other count as one. Without the delay, two programs that disagree about an
// item would change it as fast as they can.
func (d *Delays) Apply(txn uint64) {
	now := time.Now()
	for _, l := range d.losses() {
		pause, begun := d.flaps.Pause(l.of, now), false
		if !l.known {
			pause, begun = d.flaps.Lost(l.of, now)
		}
		d.delay(l.lost, pause, now, txn, errRemoved, "created again")
		if begun {
			d.Log.Warn("somebody else removes a value repeatedly; it is created again after growing pauses", "key", l.lost, "times", After, "within", Within, "longest_pause", LongestPause)
		}
	}
	slices.Sort(d.changed)
	for _, key := range slices.Compact(d.changed) {
		pause, begun := d.flaps.Lost(key, now)
		d.delay(key, pause, now, txn, errChanged, "changed back")
		if begun {
			d.Log.Warn("somebody else changes a value repeatedly; it is changed back after growing pauses", "key", key, "times", After, "within", Within, "longest_pause", LongestPause)
		}
	}
	d.changed = nil
}

// delay delays the repair of a value, unless the pause is 0.
func (d *Delays) delay(key string, pause time.Duration, now time.Time, txn uint64, why error, repair string) {
	if pause > 0 {
		d.Graph.Suspend(key, fmt.Errorf("%w: it is %s after a pause of %v", why, repair, pause))
		d.Retries.Postpone(key, pause, now, txn)
	}
}

// A loss is that of a value, or of values that depend on each other, which may be noticed one after the other.
type loss struct {
	of    string // the first key of those values, whether it is lost or not
	lost  string // the first key that vanished
	known bool   // another one of them is missing since before
}

// losses returns those since the last call, of values that wait for no other one.
func (d *Delays) losses() (out []loss) {
	var lost []*graph.Node
	slices.Sort(d.vanished)
	for _, key := range slices.Compact(d.vanished) {
		if n := d.Graph.Node(key); n != nil && n.Desired() != nil && n.Actual() == nil && n.State() == graph.Missing {
			lost = append(lost, n)
		}
	}
	d.vanished = nil
	counted := map[string]bool{}
	all := components.All(lost, d.needs)
	for _, n := range lost {
		together := all[n]
		l := loss{of: n.Key(), lost: n.Key()}
		for _, other := range together {
			l.of = min(l.of, other.Key())
			l.known = l.known || other.Actual() == nil && all[other] == nil
		}
		if !counted[l.of] && !d.waits(n, together) {
			counted[l.of] = true
			out = append(out, l)
		}
	}
	return out
}

// needs returns the nodes without which a desired value cannot be, whether they are there or not: its base, and those of its
// dependencies on keys.
func (d *Delays) needs(n *graph.Node) (out []*graph.Node) {
	if n.Desired() == nil {
		return nil
	}
	if n.Base() != nil {
		out = append(out, n.Base())
	}
	for _, dep := range n.Desired().Deps {
		if to := d.Graph.Node(dep.Key); to != nil {
			out = append(out, to)
		}
	}
	return out
}

// waits reports that a value waits for something else than those that depend on it and on which it depends.
func (d *Delays) waits(n *graph.Node, together []*graph.Node) bool {
	if b := n.Base(); b != nil && b.Actual() == nil {
		return true
	}
	return slices.ContainsFunc(n.Unmet(), func(dep value.Dep) bool { return !slices.Contains(together, d.Graph.Node(dep.Key)) })
}

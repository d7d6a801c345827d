package contest

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/components"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// The errors of values that somebody else removes or changes repeatedly after the agent has written them.
var (
	errContested = errors.New("somebody else removes it repeatedly")
	errChanged   = errors.New("somebody else changes it repeatedly")
)

// Delays delay the repair of contested values of a graph. One goroutine owns them.
type Delays struct {
	Graph   *graph.Graph
	Retries *retry.Schedule
	Log     *slog.Logger

	contests Contests
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

// Forget ends the contest of a value that the agent itself removes.
func (d *Delays) Forget(key string) { d.contests.Forget(key) }

// Apply delays the repair of the contested values among those that vanished or changed; txn is the number
// of the transaction. A value that vanished together with its dependency does not count: it waits
// for the dependency anyway. Of values that depend on each other, and vanished together, the first
// counts. Without the delay, two programs that disagree about an item would change it as fast as
// they can.
func (d *Delays) Apply(txn uint64) {
	now := time.Now()
	for _, key := range d.counting() {
		if d.delay(key, now, txn, errContested, "created again") {
			d.Log.Warn("somebody else removes a value repeatedly; it is created again after growing pauses", "key", key, "times", After, "within", Within, "longest_pause", LongestPause)
		}
	}
	slices.Sort(d.changed)
	for _, key := range slices.Compact(d.changed) {
		if d.delay(key, now, txn, errChanged, "changed back") {
			d.Log.Warn("somebody else changes a value repeatedly; it is changed back after growing pauses", "key", key, "times", After, "within", Within, "longest_pause", LongestPause)
		}
	}
	d.changed = nil
}

// delay counts a loss or a change of a value, and delays its repair if it is contested. begun says that it is from now on.
func (d *Delays) delay(key string, now time.Time, txn uint64, why error, repair string) (begun bool) {
	pause, begun := d.contests.Lost(key, now)
	if pause == 0 {
		return false
	}
	d.Graph.Suspend(key, fmt.Errorf("%w: it is %s after a pause of %v", why, repair, pause))
	d.Retries.Postpone(key, pause, now, txn)
	return begun
}

// counting returns the keys of the values that vanished since the last call and wait for no other value.
func (d *Delays) counting() (keys []string) {
	var vanished []*graph.Node
	for _, key := range d.vanished {
		if n := d.Graph.Node(key); n != nil {
			vanished = append(vanished, n)
		}
	}
	d.vanished = nil
	for _, together := range components.Closed(vanished, d.waitsFor) {
		first := slices.MinFunc(together, func(a, b *graph.Node) int { return strings.Compare(a.Key(), b.Key()) })
		keys = append(keys, first.Key())
	}
	return keys
}

// waitsFor returns the nodes without which n cannot be created. A nil stands for something else.
func (d *Delays) waitsFor(n *graph.Node) (out []*graph.Node) {
	if n.Desired() == nil || n.Actual() != nil || n.State() != graph.Missing {
		return []*graph.Node{nil}
	}
	if b := n.Base(); b != nil && b.Actual() == nil {
		out = append(out, b)
	}
	for _, dep := range n.Unmet() {
		out = append(out, d.Graph.Node(dep.Key))
	}
	return out
}

package contest

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// errContested is the error of a value that somebody else removes repeatedly after its
// creation.
var errContested = errors.New("somebody else removes it repeatedly")

// Delays delay the creation of contested values of a graph. One goroutine owns them.
type Delays struct {
	Graph   *graph.Graph
	Retries *retry.Schedule
	Log     *slog.Logger

	contests Contests
	vanished []string // keys that were found missing since the last Apply
}

// Lost records in the graph that a value vanished by itself.
func (d *Delays) Lost(key string) {
	d.Graph.Lost(key)
	d.Vanished(key)
}

// Vanished is Lost for a value of which the graph knows it already.
func (d *Delays) Vanished(key string) { d.vanished = append(d.vanished, key) }

// Forget ends the contest of a value that the agent itself removes.
func (d *Delays) Forget(key string) { d.contests.Forget(key) }

// Apply delays the creation of the contested values among those that vanished; txn is the number
// of the transaction. A value that vanished together with its dependency does not count: it waits
// for the dependency anyway. Without the delay, two programs that disagree about an item would
// change it as fast as they can.
func (d *Delays) Apply(txn uint64) {
	keys := d.vanished
	d.vanished = nil
	now := time.Now()
	for _, key := range keys {
		n := d.Graph.Node(key)
		if n == nil || !vanishedAlone(n) {
			continue
		}
		pause, begun := d.contests.Lost(key, now)
		if pause == 0 {
			continue
		}
		d.Graph.Suspend(key, fmt.Errorf("%w: it is created again after a pause of %v", errContested, pause))
		d.Retries.Postpone(key, pause, now, txn)
		if begun {
			d.Log.Warn("somebody else removes a value repeatedly; it is created again after growing pauses",
				"key", key, "times", After, "within", Within, "longest_pause", LongestPause)
		}
	}
}

// vanishedAlone reports whether n could be created at once.
func vanishedAlone(n *graph.Node) bool {
	return n.Desired() != nil && n.Actual() == nil && n.State() == graph.Missing && len(n.Unmet()) == 0 &&
		(n.Base() == nil || n.Base().Actual() != nil)
}

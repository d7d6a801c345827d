package scheduler

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// warn logs the warnings of the values that txn changes. Warnings that a value has already
// are not logged again.
func (s *Scheduler) warn(txn Txn) {
	for _, c := range txn.Changes {
		if c.Value == nil || len(c.Value.Warnings()) == 0 {
			continue
		}
		if n := s.graph.Node(c.Key); n != nil && slices.Equal(kind.Warnings(n.Desired()), c.Value.Warnings()) {
			continue
		}
		for _, w := range c.Value.Warnings() {
			s.log.Warn("part of a value is ignored", "key", c.Key, "warning", w)
		}
	}
}

package scheduler

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// normalized returns the normalized form of m and the declared form. The latter is nil if
// m is normalized already.
func normalized(d *descriptor, key string, m proto.Message) (proto.Message, *graph.Declared) {
	if d.normalize == nil {
		return m, nil
	}
	meaning, warnings := d.normalize(key, m)
	if meaning == m && len(warnings) == 0 {
		return m, nil
	}
	return meaning, &graph.Declared{Data: m, Warnings: warnings}
}

// declared returns the message of v before it was normalized.
func declared(v *graph.Value) proto.Message {
	if v == nil || v.Declared == nil {
		return message(v)
	}
	return v.Declared.Data.(proto.Message)
}

// warnings returns the descriptor's warnings about v.
func warnings(v *graph.Value) []string {
	if v == nil || v.Declared == nil {
		return nil
	}
	return v.Declared.Warnings
}

// warn logs the warnings of the values that txn changes. Warnings that a value has already
// are not logged again.
func (s *Scheduler) warn(txn Txn) {
	for _, c := range txn.Changes {
		if c.Value == nil || len(c.Value.Warnings()) == 0 {
			continue
		}
		if n := s.graph.Node(c.Key); n != nil && slices.Equal(warnings(n.Desired()), c.Value.Warnings()) {
			continue
		}
		for _, w := range c.Value.Warnings() {
			s.log.Warn("part of a value is ignored", "key", c.Key, "warning", w)
		}
	}
}

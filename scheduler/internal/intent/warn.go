package intent

import (
	"log/slog"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// Warn logs the warnings of the values that the changes declare. Warnings that a value has
// already are not logged again.
func (cs Changes) Warn(g *graph.Graph, log *slog.Logger) {
	for c := range cs.All {
		warnings := kind.Warnings(c.Value)
		if len(warnings) == 0 {
			continue
		}
		if n := g.Node(c.Key); n != nil && slices.Equal(kind.Warnings(n.Desired()), warnings) {
			continue
		}
		for _, w := range warnings {
			log.Warn("part of a value is ignored", "key", c.Key, "warning", w)
		}
	}
}

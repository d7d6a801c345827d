package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/keyplane/keyplane/connectors/redis/internal/info"
)

// identity returns the masters' replication IDs, and the former IDs of their data. A
// promoted replica keeps its master's ID as the former one. A server that lost its data
// has a new ID and no former one. A master without IDs leaves both unknown.
func (w *watch) identity(ctx context.Context) (ids, former string, err error) {
	var now, before []string
	for _, n := range w.nodes {
		text, err := n.data.Info(ctx, "replication").Result()
		if err != nil && !refused(err) {
			return "", "", fmt.Errorf("%w: %s: %w", ErrLost, n.addr, err)
		}
		id, older := info.ReplicationIDs(text)
		if id == "" {
			return "", "", nil
		}
		now = append(now, id)
		if older != "" {
			before = append(before, older)
		}
	}
	return strings.Join(now, " "), strings.Join(before, " "), nil
}

package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// AutoCompact compacts the cluster to its current revision at the configured period, until
// ctx ends. Without a period it returns at once. All users of the cluster lose the
// history, so use it only for a cluster of the agent's own that does not compact itself.
func (c *Connector) AutoCompact(ctx context.Context) error {
	if c.cfg.AutoCompact <= 0 {
		return nil
	}
	if c.cfg.AutoCompact < time.Hour {
		c.log.Warn("etcd is compacted more often than every hour", "period", c.cfg.AutoCompact)
	}
	tick := time.NewTicker(c.cfg.AutoCompact)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := c.compact(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("compacting etcd failed", "err", err)
		}
	}
}

// compact compacts up to the present revision, with a client of its own: it runs rarely,
// and must not share the line of the watch.
func (c *Connector) compact(ctx context.Context) error {
	client, err := newClient(ctx, c.cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	now, err := client.Get(ctx, "\x00", clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	_, err = client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	return err
}

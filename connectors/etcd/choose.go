package etcd

import (
	"context"
	"sync"
)

// choose decides which cluster a watch lists after another one has answered than the known one. A restored cluster
// answers at all endpoints. But a member that lost its disk may have begun a cluster of its own. So as long as an
// endpoint belongs to the known cluster, only such endpoints are used.
func (c *Connector) choose(ctx context.Context, w *watch) {
	members := c.members(ctx, w.client.Endpoints(), w.at.cluster)
	if len(members) == 0 {
		w.at = position{}
		return
	}
	w.log.Warn("another etcd cluster answers at some endpoints; using those of the known one", "used", members, "endpoints", w.client.Endpoints())
	w.client.SetEndpoints(members...)
}

// members asks all endpoints at once, and returns those that belong to a cluster.
func (c *Connector) members(ctx context.Context, endpoints []string, cluster uint64) []string {
	ctx, end := context.WithTimeout(ctx, c.cfg.OperationTimeout)
	defer end()
	answers := make([]uint64, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() { answers[i] = c.clusterAt(ctx, endpoint) })
	}
	asking.Wait()
	var members []string
	for i, answer := range answers {
		if answer == cluster {
			members = append(members, endpoints[i])
		}
	}
	return members
}

// clusterAt returns the cluster of an endpoint; 0: it does not answer, or its cluster has no leader, as that of a
// member that was left behind. It has a client of its own, because the token of one cluster is not valid in another.
func (c *Connector) clusterAt(ctx context.Context, endpoint string) uint64 {
	cfg := c.cfg
	cfg.Endpoints = []string{endpoint}
	client, err := newClient(ctx, cfg)
	if err != nil {
		return 0
	}
	defer client.Close()
	status, err := client.Status(ctx, endpoint)
	if err != nil || status.Leader == 0 {
		return 0
	}
	return status.Header.GetClusterId()
}

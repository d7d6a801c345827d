package etcd

import (
	"context"
	"sync"
)

// choose decides which cluster a watch lists after another one has answered than the known one. It returns false if that must
// wait. A member that lost its disk may have begun a cluster of its own. So as long as an endpoint belongs to the known cluster,
// only such endpoints are used. And silence says nothing: an endpoint that does not answer, or knows no leader, may be
// one that is started again. So the known cluster is given up only for one to which most endpoints belong, as after a restore.
func (c *Connector) choose(ctx context.Context, w *watch) bool {
	endpoints := w.client.Endpoints()
	clusters := c.clusters(ctx, endpoints)
	var members []string
	for i, cluster := range clusters {
		if cluster == w.at.cluster {
			members = append(members, endpoints[i])
		}
	}
	switch {
	case len(members) > 0:
		w.log.Warn("another etcd cluster answers at some endpoints; using those of the known one", "used", members, "endpoints", endpoints)
		w.client.SetEndpoints(members...)
	case !mostAgree(clusters):
		return false
	default:
		w.at = position{}
	}
	return true
}

// clusters asks all endpoints at once for their clusters, as clusterAt does.
func (c *Connector) clusters(ctx context.Context, endpoints []string) []uint64 {
	ctx, end := context.WithTimeout(ctx, c.cfg.OperationTimeout)
	defer end()
	answers := make([]uint64, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() { answers[i] = c.clusterAt(ctx, endpoint) })
	}
	asking.Wait()
	return answers
}

// mostAgree reports whether more than half of the answers of clusterAt name one cluster.
func mostAgree(answers []uint64) bool {
	count := map[uint64]int{}
	for _, cluster := range answers {
		if count[cluster]++; cluster != 0 && 2*count[cluster] > len(answers) {
			return true
		}
	}
	return false
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

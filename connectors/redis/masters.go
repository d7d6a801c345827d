package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/connectors/redis/internal/nodes"
	"github.com/keyplane/keyplane/internal/guard"
)

// sentinelPatience is the time limit for a Sentinel's answer. Any one Sentinel is enough,
// so dead ones must not delay the others.
const sentinelPatience = 2 * time.Second

// A master is a server that takes writes.
type master struct {
	addr string // HOST:PORT
	// In a Cluster: it owns no slot. But it may already have keys of a slot that is being moved to it.
	empty bool
}

// masters returns the masters, sorted by address, so that two answers can be compared.
func (w *watch) masters(ctx context.Context) ([]master, error) {
	switch {
	case w.access.sentinels():
		addr, err := w.access.namedBySentinels(ctx)
		return []master{{addr: addr}}, err
	case w.access.cluster():
		return w.access.namedByCluster(ctx, w.cluster)
	}
	return []master{{addr: w.access.Endpoint}}, nil
}

// A naming is the answer of one Sentinel.
type naming struct {
	// HOST:PORT of the master; empty with an error.
	addr  string
	epoch int // grows with each failover
	err   error
}

// namedBySentinels asks all Sentinels, because a partitioned one may still name the old
// master.
func (a access) namedBySentinels(ctx context.Context) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sentinelPatience)
	defer cancel()
	said := make([]naming, len(a.Endpoints))
	var all sync.WaitGroup
	for i, addr := range a.Endpoints {
		all.Go(func() { said[i] = a.namedBySentinel(ctx, addr) })
	}
	all.Wait()
	addr, err = newest(said)
	if err != nil {
		return "", fmt.Errorf("who is master %s: %w", a.MasterName, err)
	}
	return addr, nil
}

// namedBySentinel asks one Sentinel for the master. The connection is closed afterwards:
// another one may be asked next time.
func (a access) namedBySentinel(ctx context.Context, addr string) naming {
	o := a.sentinel(addr, limiting(dialer(ctx, a.TLS, 0), a.Bounds, false))
	o.ContextTimeoutEnabled = true
	client := goredis.NewSentinelClient(o)
	defer client.Close()
	var about map[string]string
	err := guard.Run(func() (err error) {
		about, err = client.Master(ctx, a.MasterName).Result()
		if err == nil && (about["ip"] == "" || about["port"] == "") {
			err = fmt.Errorf("%w: it names no address", ErrNotRedis)
		}
		return err
	})
	if err != nil {
		return naming{err: fmt.Errorf("sentinel %s: %w", addr, err)}
	}
	epoch, err := strconv.Atoi(about["config-epoch"])
	return naming{addr: net.JoinHostPort(about["ip"], about["port"]), epoch: epoch, err: err}
}

// newest returns the master's address after the latest failover. A partitioned Sentinel has an
// older epoch, so its answer loses. If none has answered, the error joins all of theirs.
func newest(said []naming) (addr string, err error) {
	var errs []error
	best := -1
	for _, n := range said {
		if n.err != nil {
			errs = append(errs, n.err)
		} else if n.epoch > best {
			addr, best = n.addr, n.epoch
		}
	}
	if best < 0 {
		return "", errors.Join(errs...)
	}
	return addr, nil
}

// namedByCluster returns the masters of a Cluster, sorted by address.
func (a access) namedByCluster(ctx context.Context, cluster *goredis.ClusterClient) ([]master, error) {
	var mu sync.Mutex
	var owners []*goredis.Client
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *goredis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		owners = append(owners, c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.where(), err)
	}
	if len(owners) == 0 {
		return nil, fmt.Errorf("%s: %w", a.where(), ErrUncovered)
	}
	slices.SortFunc(owners, func(a, b *goredis.Client) int { return strings.Compare(a.Options().Addr, b.Options().Addr) })
	var all []master
	for _, c := range owners {
		all = append(all, master{addr: c.Options().Addr})
	}
	// The library finds masters by their slots. Always the same node is asked for the others, because nodes
	// learn of each other one after the other.
	text, err := owners[0].ClusterNodes(ctx).Result()
	if err != nil && !refused(err) {
		return nil, fmt.Errorf("%s: %w", a.where(), err)
	}
	for _, addr := range nodes.WithoutSlots(text) {
		if !slices.Contains(all, master{addr: addr}) {
			all = append(all, master{addr: addr, empty: true})
		}
	}
	slices.SortFunc(all, func(a, b master) int { return strings.Compare(a.addr, b.addr) })
	return all, nil
}

// eachMaster calls do for each master of a Cluster concurrently. Masters without slots that cannot be reached
// are left out.
func (a access) eachMaster(ctx context.Context, cluster *goredis.ClusterClient, dial dialFunc, do func(context.Context, *goredis.Client) error) error {
	all, err := a.namedByCluster(ctx, cluster)
	if err != nil {
		return err
	}
	each, ctx := errgroup.WithContext(ctx)
	each.Go(func() error {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error {
			return guard.Run(func() error { return do(ctx, c) })
		})
	})
	for _, m := range all {
		if !m.empty {
			continue
		}
		each.Go(func() error {
			return guard.Run(func() error {
				o := a.node(m.addr, dial)
				o.ContextTimeoutEnabled = true
				c := goredis.NewClient(o)
				defer c.Close()
				if c.Ping(ctx).Err() != nil {
					return nil
				}
				return do(ctx, c)
			})
		})
	}
	return each.Wait()
}

// slotCount is the number of slots in a Cluster.
const slotCount = 16384

// checkCover checks that the nodes serve all slots. It asks each node only about its own
// slots, because other nodes may not know yet that it has given some away. Each node
// already reports changes, so the watch notices if a slot moves later.
func (w *watch) checkCover(ctx context.Context) error {
	served := make([]bool, slotCount)
	for _, n := range w.nodes {
		id, err := n.data.Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			return fmt.Errorf("%s: %w", n.addr, err)
		}
		slots, err := n.data.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS exists only since Redis 7
		if err != nil {
			return fmt.Errorf("%s: %w", n.addr, err)
		}
		serve(served, slots, id)
	}
	if missing := slices.Index(served, false); missing >= 0 {
		return fmt.Errorf("%w: not slot %d, and perhaps others", ErrUncovered, missing)
	}
	return nil
}

// serve marks the slots with master id. CLUSTER SLOTS lists the master of a range first, and
// then its replicas.
func serve(served []bool, slots []goredis.ClusterSlot, id string) {
	for _, s := range slots {
		if len(s.Nodes) == 0 || s.Nodes[0].ID != id {
			continue
		}
		for slot := max(s.Start, 0); slot <= min(s.End, len(served)-1); slot++ {
			served[slot] = true
		}
	}
}

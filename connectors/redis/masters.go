package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/internal/guard"
)

// sentinelPatience is the time limit for a Sentinel's answer. Any one Sentinel is enough,
// so dead ones must not delay the others.
const sentinelPatience = 2 * time.Second

// masters returns the addresses of the masters, sorted.
func (w *watch) masters(ctx context.Context) ([]string, error) {
	switch {
	case w.access.sentinels():
		return w.access.namedBySentinels(ctx)
	case w.access.cluster():
		return w.namedByCluster(ctx)
	}
	return []string{w.access.Endpoint}, nil
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
func (a access) namedBySentinels(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, sentinelPatience)
	defer cancel()
	said := make([]naming, len(a.Endpoints))
	var all sync.WaitGroup
	for i, addr := range a.Endpoints {
		all.Go(func() { said[i] = a.namedBySentinel(ctx, addr) })
	}
	all.Wait()
	addr, err := newest(said)
	if err != nil {
		return nil, fmt.Errorf("who is master %s: %w", a.MasterName, err)
	}
	return []string{addr}, nil
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

// namedByCluster returns the masters of a Cluster, sorted, so that two answers can be
// compared.
func (w *watch) namedByCluster(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var addrs []string
	err := w.cluster.ForEachMaster(ctx, func(_ context.Context, c *goredis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addrs = append(addrs, c.Options().Addr)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.access.where(), err)
	}
	slices.Sort(addrs)
	return addrs, nil
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

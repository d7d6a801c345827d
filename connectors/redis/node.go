package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis/internal/info"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A node is one watched master with two connections: the server names changed keys on one,
// and the watch reads keys on the other.
type node struct {
	// HOST:PORT of the master, as the Cluster, a Sentinel or the configuration names it.
	addr   string
	prefix string
	// Shared by all nodes of the watch.
	box *inbox
	log *slog.Logger

	listener *goredis.Client // has one connection, that of sub
	// Only receive reads from it; ask sends PINGs on it.
	sub *goredis.PubSub
	// Connects only once: after the loss of its connection the watch ends.
	data *goredis.Client
	// Set when listener connects, before any message is received.
	greeted   greeting
	pongs     chan struct{}       // has a token when the server has answered a PING on sub
	heard     map[string]struct{} // keys of notifications since the last PING answer; owned by receive
	heardCost int64               // bytes of heard
	said      kvdbsync.Pulse      // counts bytes on the connection of sub
	// Shared by all watches of the Connector.
	memory  *memory
	evicted int64 // number of keys evicted by the server, at the last reading
	missed  int64 // number of those since the previous watch
}

// newNode makes a node that is not connected. Its connections close when life ends.
func newNode(life context.Context, a access, addr, prefix string, box *inbox, mem *memory, log *slog.Logger) *node {
	n := &node{addr: addr, prefix: prefix, box: box, memory: mem, log: log.With("server", addr), pongs: make(chan struct{}, 1), heard: map[string]struct{}{}}
	dial := dialer(life, a.TLS, a.ReadTimeout)
	listen := a.node(addr, once(limiting(hearing(dial, &n.said), a.Bounds, true)))
	listen.Protocol = 3
	listen.OnConnect = func(ctx context.Context, cn *goredis.Conn) error {
		return guard.Run(func() (err error) {
			n.greeted, err = greet(ctx, cn, prefix)
			return err
		})
	}
	listen.PushNotificationProcessor = n.pushes()
	n.listener = goredis.NewClient(listen)
	n.sub = n.listener.Subscribe(context.Background()) // to nothing, so that it does not connect yet
	read := a.node(addr, once(limiting(dial, a.Bounds, false)))
	read.PoolSize, read.PoolTimeout = 1, waitForTurn
	n.data = goredis.NewClient(read)
	return n
}

// waitForTurn limits how long a command waits for the only reading connection. The
// previous command may take long on a slow line. If the line falls silent, both end.
const waitForTurn = 24 * time.Hour

// checkAlone returns an error for a node of a Cluster: it has only a part of the keys. The field of INFO is the same in
// Redis, Valkey and Redict; that with the mode is not.
func (n *node) checkAlone(ctx context.Context) error {
	inCluster := n.greeted.mode == "cluster"
	if n.greeted.mode == nil {
		about, err := n.info(ctx, "cluster")
		if err != nil {
			return err
		}
		inCluster = info.Field(about, "cluster_enabled") == "1"
	}
	if inCluster {
		return fmt.Errorf("endpoint %s is a node of a Cluster: write endpoints: [%[1]s], which finds the other nodes", n.addr)
	}
	return nil
}

// subscribe enables keyspace notifications on a server without tracking.
func (n *node) subscribe(ctx context.Context) error {
	if n.greeted.tracking {
		return nil
	}
	n.log.Info("redis tracks no keys for this client, keyspace notifications are used", "why", n.greeted.refusal)
	if err := n.enableEvents(ctx); err != nil {
		return err
	}
	return n.sub.PSubscribe(ctx, fmt.Sprintf("__keyspace@%d__:%s*", n.data.Options().DB, escape(n.prefix)))
}

// receive puts the server's messages into the inbox until the connection ends. It never
// returns nil: without this connection changes would be missed.
func (n *node) receive(ctx context.Context) error {
	for {
		said, err := n.sub.Receive(ctx)
		if err != nil {
			return n.lost(err)
		}
		switch said := said.(type) {
		case *goredis.Message:
			if err := n.hear(said); err != nil {
				return err
			}
		case *goredis.Pong:
			n.box.add(slices.Collect(maps.Keys(n.heard))...)
			clear(n.heard)
			n.heardCost = 0
			select {
			case n.pongs <- struct{}{}:
			default: // only one PING is pending at a time
				return fmt.Errorf("%w: %s sent an answer without a request", ErrNotRedis, n.addr)
			}
		}
	}
}

// hear records a keyspace notification: its key must be read again. The notifications of
// one transaction come one by one, but an answer to a PING never comes between them. So
// the next answer completes them.
func (n *node) hear(m *goredis.Message) error {
	_, key, _ := strings.Cut(m.Channel, "__:")
	if !strings.HasPrefix(key, n.box.prefix) {
		return nil
	}
	n.heardCost += int64(len(key)) + kvdbsync.PairCost
	if n.heardCost > n.box.bounds.Listing {
		return n.box.tooMany()
	}
	if m.Payload == "evicted" {
		n.box.suspect(key)
	}
	n.heard[key] = struct{}{}
	n.box.some.Set()
	return nil
}

// ask sends a PING on the connection for changes, and opens that connection if necessary.
func (n *node) ask(ctx context.Context) error {
	if err := n.sub.Ping(ctx); err != nil {
		return n.lost(err)
	}
	return nil
}

// lost returns the error of a lost connection for changes.
func (n *node) lost(err error) error {
	if errors.Is(err, io.EOF) && !n.greeted.met {
		err = fmt.Errorf("it closed the connection at the command HELLO; a proxy that does not know it, such as twemproxy, cannot tell changes: "+
			"expected the address of the server itself: %w", err)
	}
	return fmt.Errorf("%w: %s: %w", ErrLost, n.addr, err)
}

// answer waits for the answer to the PING. All earlier messages are then in the inbox. The
// answer may take long on a slow line, but the line may not be silent for timeout.
func (n *node) answer(ctx context.Context, timeout time.Duration) error {
	ctx, end := n.said.Bound(ctx, timeout, fmt.Errorf("%w: %s", ErrSilent, n.addr))
	defer end()
	select {
	case <-n.pongs:
		return nil
	case <-n.box.lost:
		return n.box.failure()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close closes the connections. It ignores their errors: these only say that the
// connections are already closed.
func (n *node) close() {
	_ = n.sub.Close()
	_ = n.listener.Close()
	_ = n.data.Close()
}

// refused reports whether the server refused a command because of permissions or because it
// does not know the command. Other errors, such as a lost connection, must not be mistaken for
// a missing feature.
func refused(err error) bool {
	var reply goredis.Error
	return errors.As(err, &reply) && (strings.HasPrefix(reply.Error(), "ERR ") || strings.HasPrefix(reply.Error(), "NOPERM "))
}

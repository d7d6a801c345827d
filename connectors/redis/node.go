package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A node is one master that is watched, by two connections: on one the server
// says which keys changed, on the other they are read.
type node struct {
	addr   string
	prefix string
	box    *inbox
	log    *slog.Logger

	listener  *goredis.Client // has one connection, that of sub
	sub       *goredis.PubSub
	data      *goredis.Client
	greeted   greeting
	pongs     chan struct{}       // has a token when a PING on sub was answered
	heard     map[string]struct{} // keys of notifications since the last such answer; owned by receive
	heardCost int64               // the bytes of them
	said      kvdbsync.Pulse      // bytes on the connection of sub
	memory    *memory
	evicted   int64 // how many keys the server has evicted, when last asked
	missed    int64 // how many of them since the watch before this one
}

// newNode makes a node that is not connected to. Its connections end when life does.
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

// waitForTurn is how long a command may wait for the one connection that reads. The
// command before it may take long on a slow line; if it falls silent, both end.
const waitForTurn = 24 * time.Hour

// subscribe makes a server that does not track tell what changes all the same.
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

// receive puts into the inbox what the server says, until the connection ends.
func (n *node) receive(ctx context.Context) error {
	for {
		said, err := n.sub.Receive(ctx)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrLost, n.addr, err)
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
			default: // one PING is under way at a time
				return fmt.Errorf("%w: %s answers what nobody asked", ErrNotRedis, n.addr)
			}
		}
	}
}

// hear takes a keyspace notification. Any means that the key is to be read again. Those of
// one transaction come one by one, but an answer to a PING is never between them,
// so the next one makes what was heard complete.
func (n *node) hear(m *goredis.Message) error {
	_, key, _ := strings.Cut(m.Channel, "__:")
	if n.heardCost += int64(len(key)) + kvdbsync.PairCost; n.heardCost > n.box.bounds.Listing {
		return n.box.tooMany()
	}
	if m.Payload == "evicted" {
		n.box.suspect(key)
	}
	n.heard[key] = struct{}{}
	n.box.some.Set()
	return nil
}

// ask sends a PING on the connection that tells of changes, and makes that
// connection if need be.
func (n *node) ask(ctx context.Context) error {
	if err := n.sub.Ping(ctx); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrLost, n.addr, err)
	}
	return nil
}

// answer waits for what was asked: all that was told before is then in the inbox. The
// answer may take as long as the line needs, but the line may not be silent for timeout.
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

// close lets go of what belongs to the connections. What that may say is that
// they have ended.
func (n *node) close() {
	_ = n.sub.Close()
	_ = n.listener.Close()
	_ = n.data.Close()
}

// refused tells an answer of the server that a command is not for us from all
// other failures.
func refused(err error) bool {
	var reply goredis.Error
	return errors.As(err, &reply) && (strings.HasPrefix(reply.Error(), "ERR ") || strings.HasPrefix(reply.Error(), "NOPERM "))
}

package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A greeting is the result of the handshake on a new connection.
type greeting struct {
	met      bool  // the server has answered
	tracking bool  // the server names changed keys under the prefix
	refusal  error // reason for no tracking
	replica  bool  // the server is a replica
	mode     any   // standalone, cluster or sentinel; nil: the server refuses HELLO
}

// greet asks the server to track the prefix.
func greet(ctx context.Context, cn *goredis.Conn, prefix string) (g greeting, err error) {
	hello := goredis.NewCmd(ctx, "HELLO")
	err = cn.Process(ctx, hello)
	if err != nil {
		return refusedGreeting(g, err)
	}
	g.met = true
	about, _ := hello.Val().(map[any]any)
	g.replica, g.mode = about["role"] == "replica", about["mode"]
	if about["proto"] != int64(3) {
		g.refusal = fmt.Errorf("no RESP3: %v", about["proto"])
		return g, nil
	}
	args := []any{"CLIENT", "TRACKING", "ON", "BCAST"}
	if prefix != "" {
		args = append(args, "PREFIX", prefix)
	}
	if err := cn.Process(ctx, goredis.NewCmd(ctx, args...)); err != nil {
		return refusedGreeting(g, err)
	}
	g.tracking = true
	return g, nil
}

// refusedGreeting distinguishes a server that cannot track from one that fails.
func refusedGreeting(g greeting, err error) (greeting, error) {
	if !refused(err) {
		return g, err
	}
	g.met, g.refusal = true, err
	return g, nil
}

// pushes returns the handler of invalidations for the listening connection.
func (n *node) pushes() push.NotificationProcessor {
	p := goredis.NewPushNotificationProcessor()
	if err := p.RegisterHandler("invalidate", invalidation{n}, false); err != nil {
		panic(err) // the processor is new, so no other handler is registered
	}
	return p
}

// An invalidation handles the messages of one server about changed keys.
type invalidation struct{ n *node }

// HandlePushNotification implements push.NotificationHandler. The message is
// ["invalidate", [key, ...]]. The keys are null after a flush.
func (i invalidation) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, said []any) error {
	keys, ok := names(said)
	if !ok {
		i.n.box.fail(fmt.Errorf("%w: %s", ErrFlushed, i.n.addr))
		return nil
	}
	for _, key := range keys {
		if d, ok := droppedFrom(key); ok {
			i.n.box.fail(fmt.Errorf("%w: the name of a key has %d bytes", kvdbsync.ErrTooMuch, d.size))
			return nil
		}
	}
	i.n.box.add(keys...)
	return nil
}

// names returns the keys of an invalidation; false: it covers all keys.
func names(said []any) (keys []string, ok bool) {
	if len(said) != 2 {
		return nil, false
	}
	list, ok := said[1].([]any)
	if !ok {
		return nil, false
	}
	for _, one := range list {
		key, ok := one.(string)
		if !ok {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, true
}

package redis_test

import (
	"context"
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// benchOf is a server beside a bare client, which does nothing but track, and read what
// it is told of.
func benchOf(b *testing.B, r *testkit.Redis) conformance.Bench {
	client := bareClient(b, r.Addr)
	return conformance.Bench{
		Connector: redis.New(redis.Config{Endpoint: r.Addr}, discard()),
		Put:       func(p kvdbsync.Pair) error { return client.Set(b.Context(), p.Key, p.Value, 0).Err() },
		Watch: func(ctx context.Context, prefix string, seen func(key string)) {
			told := track(ctx, b, r, prefix)
			go func() {
				for keys := range told {
					for _, key := range keys {
						if client.Get(ctx, key.(string)).Err() == nil {
							seen(key.(string))
						}
					}
				}
			}()
		},
	}
}

func BenchmarkPutToTake(b *testing.B) {
	conformance.BenchmarkPut(b, benchOf(b, testkit.StartRedis(b, testkit.RedisOptions{})), root)
}

func Benchmark10kPuts(b *testing.B) {
	s, n := benchOf(b, testkit.StartRedis(b, testkit.RedisOptions{})), 0
	conformance.BenchmarkPuts(b, func() (conformance.Bench, string) {
		n++
		return s, fmt.Sprintf("/vnf-agent/bench%d/", n)
	})
}

// BenchmarkList100k is a cold start, beside a bare client that reads page by page.
func BenchmarkList100k(b *testing.B) {
	r := testkit.StartRedis(b, testkit.RedisOptions{})
	client := bareClient(b, r.Addr)
	for i := 0; i < conformance.BenchKeys; i += 1000 {
		_, err := client.Pipelined(b.Context(), func(pipe goredis.Pipeliner) error {
			for j := range 1000 {
				p := conformance.BenchPair(root, i+j)
				pipe.Set(b.Context(), p.Key, p.Value, 0)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	conformance.BenchmarkList(b, benchOf(b, r).Connector, root, func() []kvdbsync.Pair { return pairsOf(b, client) })
}

func pairsOf(b *testing.B, client *goredis.Client) (pairs []kvdbsync.Pair) {
	for cursor := uint64(0); ; {
		keys, next, err := client.Scan(b.Context(), cursor, root+"*", 1000).Result()
		if err != nil {
			b.Fatal(err)
		}
		values, err := client.MGet(b.Context(), keys...).Result()
		if err != nil {
			b.Fatal(err)
		}
		for i, v := range values {
			pairs = append(pairs, kvdbsync.Pair{Key: keys[i], Value: []byte(v.(string))})
		}
		if cursor = next; cursor == 0 {
			return pairs
		}
	}
}

// track tells which keys below prefix change, until ctx ends.
func track(ctx context.Context, b *testing.B, r *testkit.Redis, prefix string) <-chan []any {
	told := make(chan []any, 10_000)
	processor := goredis.NewPushNotificationProcessor()
	if err := processor.RegisterHandler("invalidate", handler(func(said []any) {
		keys, _ := said[1].([]any) // nil: flushed
		told <- keys
	}), false); err != nil {
		b.Fatal(err)
	}
	client := goredis.NewClient(&goredis.Options{
		Addr: r.Addr, Protocol: 3, PushNotificationProcessor: processor,
		OnConnect: func(ctx context.Context, cn *goredis.Conn) error {
			return cn.Process(ctx, goredis.NewCmd(ctx, "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", prefix))
		},
	})
	sub := client.Subscribe(ctx)
	if err := sub.Ping(ctx); err != nil {
		b.Fatal(err)
	}
	context.AfterFunc(ctx, func() { sub.Close(); client.Close() })
	go func() {
		defer close(told)
		for {
			if _, err := sub.Receive(ctx); err != nil {
				return
			}
		}
	}()
	return told
}

// A handler is a push.NotificationHandler.
type handler func(said []any)

func (h handler) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, said []any) error {
	h(said)
	return nil
}

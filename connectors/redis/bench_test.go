package redis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// seen is when the value of a key came out at the end.
type seen struct {
	key string
	at  time.Time
}

// BenchmarkPutToTake is the time from before a put until a Source's consumer has
// the value, side by side with a bare client of the same server that tracks and
// reads, for the same puts.
func BenchmarkPutToTake(b *testing.B) {
	r := testkit.StartRedis(b, testkit.RedisOptions{})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	client := bareClient(b, r.Addr)
	of := map[string]<-chan seen{"bare": bareSeen(ctx, b, r), "source": sourceSeen(ctx, b, r)}
	took := map[string][]time.Duration{}
	for i := 0; b.Loop(); i++ {
		key := fmt.Sprintf("%s%08d", root, i)
		begun := time.Now()
		if err := client.Set(ctx, key, `{"name":"x"}`, 0).Err(); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"bare", "source"} {
			took[name] = append(took[name], await(b, of[name], key).Sub(begun))
		}
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-p50-us")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), name+"-p99-us")
	}
}

// Benchmark10kPuts puts 10,000 keys as fast as Redis takes them from 16 clients,
// and tells how long after the last put had returned all had come out: of a bare
// client, and of a Source.
func Benchmark10kPuts(b *testing.B) {
	b.Run("bare", func(b *testing.B) { benchmarkPuts(b, bareSeen) })
	b.Run("source", func(b *testing.B) { benchmarkPuts(b, sourceSeen) })
}

func benchmarkPuts(b *testing.B, watch func(context.Context, testing.TB, *testkit.Redis) <-chan seen) {
	const keys = 10_000
	r := testkit.StartRedis(b, testkit.RedisOptions{})
	client := bareClient(b, r.Addr)
	var puts, behind time.Duration
	for b.Loop() {
		if err := client.FlushAll(b.Context()).Err(); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		out := watch(ctx, b, r)
		last := make(chan time.Time)
		go func() {
			var at time.Time
			for had := map[string]bool{}; len(had) < keys; {
				s := <-out
				had[s.key], at = true, s.at
			}
			last <- at
		}()
		begun := time.Now()
		putKeys(b, client, keys)
		returned := time.Now()
		puts += returned.Sub(begun)
		behind += (<-last).Sub(returned)
		cancel()
	}
	b.ReportMetric(keys*float64(b.N)/puts.Seconds(), "puts/s")
	b.ReportMetric(float64(behind.Microseconds())/float64(b.N)/1000, "ms-behind")
}

func putKeys(b *testing.B, client *goredis.Client, keys int) {
	const writers = 16
	errs := make(chan error)
	for w := range writers {
		go func() {
			var err error
			for i := w; i < keys && err == nil; i += writers {
				err = client.Set(b.Context(), fmt.Sprintf("%s%08d", root, i), `{"name":"x"}`, 0).Err()
			}
			errs <- err
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkList100k lists 100,000 keys: a bare client that reads page by page and
// parses each value as JSON, and a Source until its consumer has them.
func BenchmarkList100k(b *testing.B) {
	const keys = 100_000
	r := testkit.StartRedis(b, testkit.RedisOptions{})
	client := bareClient(b, r.Addr)
	for i := 0; i < keys; i += 1000 {
		_, err := client.Pipelined(b.Context(), func(pipe goredis.Pipeliner) error {
			for j := range 1000 {
				key := fmt.Sprintf("%sconfig/vpp/v2/route/%08d", root, i+j)
				pipe.Set(b.Context(), key, `{"dst_network":"10.11.1.3/32","next_hop_addr":"192.168.1.13","outgoing_interface":"if1"}`, 0)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if n := bareList(b, client); n < keys {
				b.Fatalf("%d keys", n)
			}
		}
	})
	b.Run("source", func(b *testing.B) {
		for b.Loop() {
			source := newSource(r)
			ctx, cancel := context.WithCancel(b.Context())
			go func() {
				if err := source.Run(ctx); err != nil {
					b.Error(err)
				}
			}()
			<-source.Ready()
			if c, _ := source.Take(); len(c.Events) != keys {
				b.Fatalf("%d keys", len(c.Events))
			}
			cancel()
		}
	})
}

func bareList(b *testing.B, client *goredis.Client) (n int) {
	for cursor := uint64(0); ; {
		keys, next, err := client.Scan(b.Context(), cursor, root+"*", 1000).Result()
		if err != nil {
			b.Fatal(err)
		}
		values, err := client.MGet(b.Context(), keys...).Result()
		if err != nil {
			b.Fatal(err)
		}
		for _, v := range values {
			var item map[string]any
			if err := json.Unmarshal([]byte(v.(string)), &item); err != nil {
				b.Fatal(err)
			}
		}
		n += len(keys)
		if cursor = next; cursor == 0 {
			return n
		}
	}
}

func await(b *testing.B, from <-chan seen, key string) time.Time {
	b.Helper()
	for s := range from {
		if s.key == key {
			return s.at
		}
	}
	b.Fatal("the watch ended")
	return time.Time{}
}

// bareSeen is a program that does nothing but track, and read what it is told of.
func bareSeen(ctx context.Context, b testing.TB, r *testkit.Redis) <-chan seen {
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
			return cn.Process(ctx, goredis.NewCmd(ctx, "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", root))
		},
	})
	b.Cleanup(func() { client.Close() })
	sub := client.Subscribe(ctx)
	b.Cleanup(func() { sub.Close() })
	if err := sub.Ping(ctx); err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			if _, err := sub.Receive(ctx); err != nil {
				return
			}
		}
	}()
	return readTold(ctx, bareClient(b, r.Addr), told)
}

func readTold(ctx context.Context, client *goredis.Client, told <-chan []any) <-chan seen {
	out := make(chan seen, 100)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case keys := <-told:
				for _, key := range keys {
					if client.Get(ctx, key.(string)).Err() == nil {
						out <- seen{key.(string), time.Now()}
					}
				}
			}
		}
	}()
	return out
}

// A handler is a push.NotificationHandler.
type handler func(said []any)

func (h handler) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, said []any) error {
	h(said)
	return nil
}

func newSource(r *testkit.Redis) *kvdbsync.Source {
	return kvdbsync.NewSource(kvdbsync.Options{
		Name: "redis", Root: "/vnf-agent/", Connector: redis.New(redis.Config{Endpoint: r.Addr}, discard()),
	})
}

// sourceSeen is a consumer of a Source on the connector.
func sourceSeen(ctx context.Context, b testing.TB, r *testkit.Redis) <-chan seen {
	source := newSource(r)
	go func() {
		if err := source.Run(ctx); err != nil {
			b.Error(err)
		}
	}()
	<-source.Ready()
	source.Take()
	out := make(chan seen, 100)
	go func() {
		defer close(out)
		for {
			select {
			case <-source.Ready():
			case <-ctx.Done():
				return
			}
			c, _ := source.Take()
			now := time.Now()
			for _, ev := range c.Events {
				out <- seen{"/vnf-agent/" + ev.Key, now}
			}
		}
	}()
	return out
}

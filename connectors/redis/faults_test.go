package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestServerThatLostItsData(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.put(root+"a", "1")
	s.put(root+"b", "1")
	m := follow(t, s.connector())
	m.Await("a", "1", "b", "1")
	s.redis.Kill()
	s.redis.Wipe()
	s.redis.Start()
	s.put(root+"b", "2")
	m.Await("b", "2")
}

func TestAnotherServerBehindTheSameAddress(t *testing.T) {
	t.Parallel()
	one, two := start(t), start(t)
	one.put(root+"a", "1")
	two.put(root+"b", "1")
	m := follow(t, one.connector())
	m.Await("a", "1")
	one.line.Retarget(two.redis.Addr)
	one.line.Set(testkit.Reset)
	one.line.Set(testkit.Pass)
	m.Await("b", "1")
}

// A connection that only looks alive is found out, and what was missed is made up.
func TestSilence(t *testing.T) {
	t.Parallel()
	silences := map[string]func(s *server) (end func()){
		"line swallows everything": func(s *server) func() {
			s.line.Set(testkit.BlackHole)
			return func() { s.line.Set(testkit.Reset); s.line.Set(testkit.Pass) }
		},
		"server hangs": func(s *server) func() { s.redis.Pause(); return s.redis.Continue },
	}
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.put(root+"a", "1")
			c := redis.New(redis.Config{Endpoint: s.line.Addr, ReadTimeout: time.Second, DialTimeout: time.Second}, discard())
			m := follow(t, c)
			m.Await("a", "1")
			end := silence(s)
			// TCP alone would take longer than AwaitLost waits.
			m.AwaitLost(func(err error) bool { return errors.Is(err, redis.ErrSilent) })
			end()
			s.put(root+"a", "2")
			m.Await("a", "2")
		})
	}
}

// One connection of the two that a watch has is as good as none.
func TestEitherConnectionKilled(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.put(root+"a", "1")
	for i := range 2 {
		m := follow(t, s.connector())
		m.Await("a", "1")
		var ids []string
		for line := range strings.Lines(s.do("CLIENT", "LIST").(string)) {
			if !strings.Contains(line, "cmd=client|list") {
				ids = append(ids, strings.TrimPrefix(strings.Fields(line)[0], "id="))
			}
		}
		if len(ids) != 2 {
			t.Fatalf("%d connections, want two", len(ids))
		}
		s.do("CLIENT", "KILL", "ID", ids[i])
		s.put(root+"a", fmt.Sprint("changed", i))
		m.Await("a", fmt.Sprint("changed", i))
		s.put(root+"a", "1")
		m.Await("a", "1")
		s.do("CLIENT", "KILL", "TYPE", "normal") // ends the next round with none left over
		m.Await("a", "1")
		s = join(t, testkit.StartRedis(t, testkit.RedisOptions{}))
		s.put(root+"a", "1")
	}
}

// What a slow consumer has not taken waits as names of keys here, and not as
// output in the server, which would cut the connection.
func TestSlowConsumer(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, c *redis.Connector) {
		next, stop := iter.Pull2(c.Watch(s.ctx(), root))
		defer stop()
		w := watched{t, next}
		for !w.read().Synced {
		}
		const keys = 20_000
		for range 4 { // which takes several times of what the server may keep for us
			for i := 0; i < keys; i += 1000 {
				var group []kvdbsync.Event
				for j := range 1000 {
					group = append(group, kvdbsync.Event{Key: fmt.Sprintf("%s%05d", root, i+j), Value: []byte("x")})
				}
				s.txn(group)
			}
		}
		got := map[string]bool{}
		for len(got) < keys {
			for _, e := range w.read().Events {
				got[e.Key] = true
			}
		}
	}, "--client-output-buffer-limit", "pubsub 1mb 1mb 0", "--client-output-buffer-limit", "normal 1mb 1mb 0")
}

func TestNotificationsOff(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("ACL", "SETUSER", "old", "on", ">secret", "~*", "&*", "+@all", "-client|tracking")
	s.do("ACL", "SETUSER", "low", "on", ">secret", "~*", "&*", "+@all", "-client|tracking", "-config|set")
	watch := func(user string) *conformance.Mirror {
		return follow(t, redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Username: user, Password: "secret"}, discard()))
	}
	s.put(root+"a", "1")
	low := watch("low")
	err := low.AwaitLost(conformance.Any)
	want := fmt.Sprintf("redis-cli -u redis://%s CONFIG SET notify-keyspace-events KA", s.line.Addr)
	if !errors.Is(err, redis.ErrEventsOff) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want it to say %q", err, want)
	}
	s.do("CONFIG", "SET", "notify-keyspace-events", "Elx")
	m := watch("old")
	m.Await("a", "1")
	if got := s.client.ConfigGet(s.ctx(), "notify-keyspace-events").Val()["notify-keyspace-events"]; got != "AKE" {
		t.Errorf("notify-keyspace-events are %q; want AKE: those wanted and those that were there", got)
	}
	low.Await("a", "1")
	s.do("CONFIG", "SET", "notify-keyspace-events", "")
	s.put(root+"a", "2")
	m.Await("a", "2") // since somebody looks
}

// A page of the listing takes many times what the server may be silent, and so do the
// names of what changes meanwhile.
func TestSlowLine(t *testing.T) {
	t.Parallel()
	s := start(t)
	const keys = 1024 // nearly all on the first page, and some on a second
	value := strings.Repeat("x", 400)
	var want []string
	pipe := s.client.Pipeline()
	for i := range keys {
		key := fmt.Sprintf("k%04d", i)
		pipe.Set(s.ctx(), root+key, value, 0)
		want = append(want, key, value)
	}
	if _, err := pipe.Exec(s.ctx()); err != nil {
		t.Fatal(err)
	}
	s.line.Slow(100 << 10)
	cfg := redis.Config{Endpoint: s.line.Addr, ReadTimeout: time.Second} // longer than a busy machine is silent
	m := follow(t, redis.New(cfg, discard()))
	m.Await(want...)
	s.line.Slow(250 << 10)
	client, err := redis.Dial(s.ctx(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pairs, err := client.List(s.ctx(), root)
	for late := s.ctx(); err != nil && late.Err() == nil; { // a busy machine is silent for longer than the limit
		pairs, err = client.List(late, root)
	}
	if err != nil || len(pairs) != keys {
		t.Errorf("by hand %d pairs, %v", len(pairs), err)
	}
}

// Of the two connections one falls silent, and the line goes on to acknowledge.
func TestOneSilentConnection(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"that is told what changes": "tracking", "that reads": "scan"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.put(root+"a", "1")
			// No other connection is silent for so long.
			m := follow(t, redis.New(redis.Config{Endpoint: s.line.Addr, ReadTimeout: 10 * time.Second}, discard()))
			m.Await("a", "1")
			if n := s.line.Silence(said) + s.line.Silence(strings.ToUpper(said)); n != 1 {
				t.Fatalf("%d connections are silent, want 1", n)
			}
			s.put(root+"a", "2")
			m.AwaitLost(conformance.Any)
			m.Await("a", "2")
		})
	}
}

// followed reads a watch batch by batch, whose listing has been read.
func (s *server) followed(c *redis.Connector) (next func() kvdbsync.Batch) {
	s.t.Helper()
	pull, stop := iter.Pull2(c.Watch(s.ctx(), root))
	s.t.Cleanup(stop)
	next = func() kvdbsync.Batch {
		s.t.Helper()
		b, err, ok := pull()
		if err != nil || !ok {
			s.t.Fatalf("the watch ended: %v", err)
		}
		return b
	}
	for !next().Synced {
	}
	return next
}

// evict sets limits while the agent is connected, and writes until the server has evicted
// all of the keys.
func (s *server) evict(keys ...string) {
	s.t.Helper()
	s.do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	s.do("CONFIG", "SET", "maxmemory", "1")
	for s.client.Exists(s.ctx(), keys...).Val() > 0 {
		_ = s.client.Set(s.ctx(), "more", "1", 0).Err() // refused once nothing is left to evict
	}
	s.do("CONFIG", "SET", "maxmemory", "0")
}

// Whichever way the server names what changes: keys that it evicts are absent, not deleted,
// also when its limits were set while the agent was connected. The source has a problem
// until they are back.
func TestEviction(t *testing.T) {
	t.Parallel()
	const keys = 20
	for name, rules := range map[string]string{"tracking": "+@all", "notifications": "-client|tracking", "notifications only": "-client|tracking -info"} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.do("ACL", "SETUSER", "agent", "on", ">secret", "~*", "&*", "+@all")
			for rule := range strings.FieldsSeq(rules) {
				s.do("ACL", "SETUSER", "agent", rule)
			}
			var log lockedBuffer
			c := redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Username: "agent", Password: "secret"}, slog.New(slog.NewTextHandler(&log, nil)))
			var all []string
			for i := range keys {
				all = append(all, fmt.Sprintf("%skey%d", root, i))
				s.put(all[i], "1")
			}
			s.put(root+"deleted", "1")
			next := s.followed(c)
			s.delete(root + "deleted")
			if b := next(); len(b.Events) != 1 || b.Events[0].Absent || b.Problems != nil {
				t.Errorf("a deletion came as %+v", b)
			}
			s.evict(all...)
			absent := map[string]bool{}
			var problems []error
			for len(absent) < keys {
				b := next()
				for _, e := range b.Events {
					if e.Value != nil || !e.Absent {
						t.Fatalf("an eviction came as %+v", e)
					}
					absent[e.Key] = true
				}
				problems = b.Problems
			}
			if len(problems) != 1 || !errors.Is(problems[0], redis.ErrEvicted) || !strings.Contains(problems[0].Error(), fmt.Sprintf("%d of the agent's are gone, such as %s", keys, root)) {
				t.Errorf("the source has the problems %v", problems)
			}
			if !strings.Contains(log.String(), "level=WARN msg=\"redis evicted keys;") || !strings.Contains(log.String(), "key="+root+"key") {
				t.Errorf("no warning: %s", log.String())
			}
			back := kvdbsync.Batch{}
			for _, key := range all {
				s.put(key, "2")
			}
			for back.Problems == nil {
				back = next()
			}
			for len(back.Problems) > 0 {
				back = next()
			}
			s.delete(all[0])
			if b := next(); len(b.Events) != 1 || b.Events[0].Absent {
				t.Errorf("a deletion after all came back came as %+v", b)
			}
		})
	}
}

// Limits are looked at with each listing, and said when they are new. What was evicted
// between two watches is said by the second.
func TestEvictionBetweenWatches(t *testing.T) {
	t.Parallel()
	s := start(t)
	var log lockedBuffer
	c := redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr}, slog.New(slog.NewTextHandler(&log, nil)))
	list := func() (keys int, problems []error) {
		ctx, stop := context.WithCancel(s.ctx())
		defer stop()
		for b, err := range c.Watch(ctx, root) {
			if err != nil {
				t.Fatal(err)
			}
			if keys += len(b.Events); b.Synced {
				problems = b.Problems
				stop() // after a break, the listing would not count as taken
			}
		}
		return keys, problems
	}
	s.put(root+"a", "1")
	if keys, problems := list(); keys != 1 || len(problems) > 0 || strings.Contains(log.String(), "WARN") {
		t.Errorf("%d keys, %v, %s", keys, problems, log.String())
	}
	s.evict(root + "a")
	s.do("CONFIG", "SET", "maxmemory", "100mb")
	for i := range 3 {
		_, problems := list()
		if first := i == 0; first != (len(problems) > 0) || first && !errors.Is(problems[0], redis.ErrEvicted) {
			t.Errorf("listing %d has the problems %v", i, problems)
		}
		if n := strings.Count(log.String(), "level=WARN msg=\"redis may evict keys"); n != 1 {
			t.Errorf("the limits were said %d times by listing %d: %s", n, i, log.String())
		}
	}
}

// A server that still loads its data says nothing about it.
func TestServerLoads(t *testing.T) {
	t.Parallel()
	s := start(t, "--loading-process-events-interval-bytes", "1024", "--key-load-delay", "500")
	want := []string{}
	for i := range 1000 {
		s.put(fmt.Sprintf("%s%04d", root, i), strings.Repeat("x", 100))
		want = append(want, fmt.Sprintf("%04d", i), strings.Repeat("x", 100))
	}
	m := follow(t, s.connector())
	m.Await(want...)
	s.redis.Kill()
	s.redis.Start()
	if err := m.AwaitLost(conformance.Any); err == nil {
		t.Fatal("unreachable")
	}
	for m.Source.Health().State != kvdbsync.Synced {
		m.Until(func() bool { return true })
		if len(m.Has) < 1000 {
			t.Fatalf("%d keys were left", len(m.Has))
		}
	}
	m.Await(want...)
}

func TestServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	for b, err := range redis.New(redis.Config{Endpoint: "127.0.0.1:1"}, discard()).Watch(t.Context(), root) {
		if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%+v, %v", b, err)
		}
	}
}

// The end of the context ends a watch at once, whatever it waits for.
func TestEndWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.redis.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	patient := redis.Config{Endpoint: s.line.Addr, DialTimeout: time.Hour, ReadTimeout: time.Hour}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b, err := range redis.New(patient, discard()).Watch(ctx, root) {
			t.Errorf("%+v, %v", b, err)
		}
	}()
	select {
	case <-ended:
	case <-time.After(testkit.Patience): // the server is waited for
		t.Fatal("the watch goes on after the end of its context")
	}
}

// A lockedBuffer is written by the watch and read by the test.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

package redis_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// modes are the ways to be told of changes: with tracking, and without.
func modes(t *testing.T, test func(t *testing.T, s *server, c *redis.Connector), args ...string) {
	t.Helper()
	t.Run("tracking", func(t *testing.T) {
		s := start(t, args...)
		test(t, s, s.connector())
	})
	t.Run("notifications", func(t *testing.T) {
		s := start(t, append(args, "--notify-keyspace-events", "")...)
		s.do("ACL", "SETUSER", "old", "on", ">secret", "~*", "&*", "+@all", "-client|tracking")
		test(t, s, redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Username: "old", Password: "secret"}, discard()))
	})
}

// Whatever command changes a key, the change is seen.
func TestEveryCommandThatWrites(t *testing.T) {
	t.Parallel()
	a, b := root+"a", root+"b"
	steps := []struct {
		command []any
		want    []string
	}{
		{[]any{"SET", a, "1"}, []string{"a", "1"}},
		{[]any{"SETRANGE", a, 1, "2"}, []string{"a", "12"}},
		{[]any{"APPEND", a, "3"}, []string{"a", "123"}},
		{[]any{"INCR", a}, []string{"a", "124"}},
		{[]any{"INCRBYFLOAT", a, "0.5"}, []string{"a", "124.5"}},
		{[]any{"GETSET", a, "7"}, []string{"a", "7"}},
		{[]any{"SETBIT", a, 7, 0}, []string{"a", "6"}},
		{[]any{"MSET", a, "1", b, "2"}, []string{"a", "1", "b", "2"}},
		{[]any{"RENAME", a, b}, []string{"b", "1"}},
		{[]any{"RENAME", b, "elsewhere"}, nil},
		{[]any{"RENAME", "elsewhere", a}, []string{"a", "1"}},
		{[]any{"COPY", a, b}, []string{"a", "1", "b", "1"}},
		{[]any{"MOVE", b, 1}, []string{"a", "1"}},
		{[]any{"GETDEL", a}, nil},
		{[]any{"SETEX", a, 1000, "9"}, []string{"a", "9"}},
		{[]any{"PEXPIRE", a, 1}, nil},
		{[]any{"SETNX", a, ""}, []string{"a", ""}},
		{[]any{"UNLINK", a}, nil},
		{[]any{"SET", a, "back"}, []string{"a", "back"}},
		{[]any{"PEXPIREAT", a, 1}, nil},
		{[]any{"EVAL", "redis.call('SET', KEYS[1], 'scripted')", 1, a}, []string{"a", "scripted"}},
		{[]any{"BITOP", "NOT", b, "nothing"}, []string{"a", "scripted"}},
	}
	modes(t, func(t *testing.T, s *server, c *redis.Connector) {
		m := follow(t, c)
		m.Await()
		s.put("apart", "1")
		dump := s.do("DUMP", "apart")
		for _, step := range append(steps, struct {
			command []any
			want    []string
		}{[]any{"RESTORE", a, 0, dump, "REPLACE"}, []string{"a", "1"}}) {
			_ = s.client.Do(s.ctx(), step.command...).Err() // EVAL has nothing to return
			m.Await(step.want...)
		}
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, c *redis.Connector) {
		m := follow(t, c)
		m.Await()
		s.put(root+"a", "1")
		m.Await("a", "1") // before its end is set, which a busy machine might miss
		s.do("PEXPIRE", root+"a", 200)
		m.Await()
	})
}

func TestFlush(t *testing.T) {
	t.Parallel()
	s := start(t)
	m := follow(t, s.connector())
	for _, flush := range []string{"FLUSHALL", "FLUSHDB"} {
		s.put(root+"a", "1")
		s.put(root+"b", "2")
		m.Await("a", "1", "b", "2")
		s.do(flush)
		m.Await()
	}
	for b, err := range s.connector().Watch(s.ctx(), root) {
		if b.Synced {
			s.do("FLUSHALL")
		}
		if err != nil && !errors.Is(err, redis.ErrFlushed) {
			t.Errorf("ended by %v", err)
		}
	}
}

// A key of another type is told of, and is not taken for gone.
func TestKeyThatIsNoString(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, c *redis.Connector) {
		s.do("HSET", root+"listed", "name", "x")
		s.put(root+"good", "1")
		m := follow(t, c)
		m.Until(func() bool { return errors.Is(m.Errs["listed"], redis.ErrNotString) && m.Has["good"] == "1" })
		s.do("RPUSH", root+"made", "x")
		s.do("DEL", root+"listed")
		m.Until(func() bool { return len(m.Errs) == 1 && errors.Is(m.Errs["made"], redis.ErrNotString) })
		s.put(root+"made", "1")
		m.Await("good", "1", "made", "1")
	})
}

// What a pattern would take for special is only text.
func TestPrefixIsText(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, c *redis.Connector) {
		for _, prefix := range []string{`/a*/`, `/a?/`, `/[ab]/`, `/a\*/`, `/a]^-/`, ``} {
			mine, foreign := prefix+"x", "/ab/x"
			s.do("FLUSHALL")
			s.put(mine, "1")
			s.put(foreign, "1")
			next, stop := iter.Pull2(c.Watch(s.ctx(), prefix))
			w := watched{t, next}
			has := map[string]string{}
			for synced := false; !synced; {
				b := w.read()
				synced = b.Synced
				for _, e := range b.Events {
					has[e.Key] = string(e.Value)
				}
			}
			s.put(foreign, "2")
			s.put(mine, "2")
			for has[mine] != "2" {
				for _, e := range w.read().Events {
					has[e.Key] = string(e.Value)
				}
			}
			if _, strange := has[foreign]; strange != (prefix == "") {
				t.Errorf("%q: %v", prefix, has)
			}
			stop()
		}
	})
}

// Money that transactions move about is never seen to be more or less, though the
// keys are read after they have changed, and change while they are read.
func TestTransactionsStayTogether(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, c *redis.Connector) {
		const accounts, transfers = 8, 1000
		var has [accounts]int
		for i := range has {
			has[i] = 100
			s.put(fmt.Sprint(root, i), "100")
		}
		next, stop := iter.Pull2(c.Watch(s.ctx(), root))
		defer stop()
		w := watched{t, next}
		seen := map[string]int{}
		apply := func(b kvdbsync.Batch) {
			for _, e := range b.Events {
				seen[e.Key], _ = strconv.Atoi(string(e.Value))
			}
		}
		for synced := false; !synced; {
			b := w.read()
			apply(b)
			synced = b.Synced
		}
		done := make(chan error)
		go func() { done <- transfer(s, has[:], transfers) }()
		for seen[root+"last"] == 0 {
			apply(w.read())
			sum := 0
			for key, amount := range seen {
				if key != root+"last" {
					sum += amount
				}
			}
			if sum != accounts*100 {
				t.Fatalf("%d in all accounts, want %d: %v", sum, accounts*100, seen)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func transfer(s *server, has []int, times int) error {
	random := rand.New(rand.NewPCG(1, 2))
	for range times {
		from := random.IntN(len(has))
		to := (from + 1 + random.IntN(len(has)-1)) % len(has)
		has[from], has[to] = has[from]-1, has[to]+1
		_, err := s.client.TxPipelined(s.t.Context(), func(pipe goredis.Pipeliner) error {
			pipe.Set(s.t.Context(), fmt.Sprint(root, from), has[from], 0)
			pipe.Set(s.t.Context(), fmt.Sprint(root, to), has[to], 0)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.client.Set(s.t.Context(), root+"last", 1, 0).Err()
}

// A listing is complete though keys are added, changed and deleted meanwhile.
func TestChangesDuringTheListing(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, c *redis.Connector) {
		want := map[string]string{}
		var group []kvdbsync.Event
		for i := range 5000 {
			group = append(group, kvdbsync.Event{Key: fmt.Sprintf("%s%04d", root, i), Value: []byte("1")})
			want[fmt.Sprintf("%04d", i)] = "1"
		}
		s.txn(group)
		m := mirrored{}
		first := true
		for b, err := range c.Watch(s.ctx(), root) {
			if err != nil {
				t.Fatal(err)
			}
			m.apply(b)
			if first { // one page has been read, the keys of the others have not
				first = false
				pipe := s.client.Pipeline()
				for i := 0; i < 5000; i += 5 {
					name := fmt.Sprintf("%04d", i)
					pipe.Set(s.ctx(), root+name, "2", 0)
					pipe.Del(s.ctx(), fmt.Sprintf("%s%04d", root, i+1))
					pipe.Set(s.ctx(), root+"new"+name, "1", 0)
					want[name], want["new"+name] = "2", "1"
					delete(want, fmt.Sprintf("%04d", i+1))
				}
				if _, err := pipe.Exec(s.ctx()); err != nil {
					t.Fatal(err)
				}
			}
			if b.Synced {
				break
			}
		}
		m.expect(t, want)
	})
}

// mirrored is what the batches of a watch amount to.
type mirrored map[string]string

func (m mirrored) apply(b kvdbsync.Batch) {
	for _, e := range b.Events {
		m[e.Key[len(root):]] = string(e.Value)
		if e.Value == nil {
			delete(m, e.Key[len(root):])
		}
	}
}

func (m mirrored) expect(t *testing.T, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if m[key] != value {
			t.Fatalf("%s is %q, want %q", key, m[key], value)
		}
	}
	if len(m) != len(want) {
		t.Fatalf("%d keys, want %d", len(m), len(want))
	}
}

// FuzzPrefix lists what begins with any text, and nothing else.
func FuzzPrefix(f *testing.F) {
	of := start(f)
	client, err := redis.Dial(f.Context(), redis.Config{ReadTimeout: testkit.Patience, Endpoint: of.redis.Addr})
	if err != nil {
		f.Fatal(err)
	}
	defer client.Close()
	for _, prefix := range []string{"/a/", `*`, `?[a]\*`, `[^a-b]`, "\\", "\x00\xff", "", "]["} {
		f.Add(prefix, "a/b")
	}
	f.Fuzz(func(t *testing.T, prefix, key string) {
		s := server{t: t, client: of.client}
		s.do("FLUSHALL")
		s.put(key, "1")
		s.put(prefix+"mine", "1")
		want := map[string]bool{prefix + "mine": true}
		if strings.HasPrefix(key, prefix) {
			want[key] = true
		}
		pairs, err := client.List(t.Context(), prefix)
		if err != nil || len(pairs) != len(want) {
			t.Fatalf("%q: %q, %v; want %v", prefix, pairs, err, want)
		}
		for _, p := range pairs {
			if !want[p.Key] {
				t.Errorf("%q lists %q", prefix, p.Key)
			}
		}
	})
}

package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// answers are what a hostile server says to commands, by name; others it answers as a
// server with one key does. Of several parts, the last is said for ever.
type answers map[string][]string

// hostile is a server of which the test has each answer.
func hostile(t *testing.T, says answers) redis.Config {
	t.Helper()
	return redis.Config{Endpoint: listening(t, says.serve), ReadTimeout: time.Minute, Bounds: tightBounds}
}

// listening serves each connection until the test ends, and returns the address.
func listening(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(t.Context(), func() { conn.Close() })()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

var tightBounds = kvdbsync.Bounds{Value: 1 << 20, Page: 8 << 20, Listing: 16 << 20}

func (a answers) serve(conn net.Conn) {
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		for i, parts := 0, a.answer(command); i < len(parts) || len(parts) > 1; i++ {
			if _, err := out.WriteString(parts[min(i, len(parts)-1)]); err != nil {
				return
			}
		}
		if out.Flush() != nil {
			return
		}
	}
}

func (a answers) answer(command []string) []string {
	name := strings.ToUpper(command[0])
	if said, ok := a[name]; ok {
		return said
	}
	switch name {
	case "HELLO":
		return []string{"%2\r\n+role\r\n+master\r\n+proto\r\n:3\r\n"}
	case "PING":
		return []string{"+PONG\r\n"}
	case "INFO":
		return []string{"$0\r\n\r\n"}
	case "SCAN":
		return []string{"*2\r\n$1\r\n0\r\n*1\r\n" + bulk(root+"a")}
	case "MGET":
		return []string{"*1\r\n" + bulk("1")}
	case "CONFIG":
		return []string{"%1\r\n" + bulk("notify-keyspace-events") + bulk("KA")}
	case "PSUBSCRIBE":
		return []string{">3\r\n+psubscribe\r\n" + bulk(command[1]) + ":1\r\n"}
	}
	return []string{"+OK\r\n"}
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func readCommand(in *bufio.Reader) (words []string, err error) {
	length := func() (n int) {
		var line string
		if line, err = in.ReadString('\n'); err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		}
		return n
	}
	for range length() {
		word := make([]byte, length()+2)
		if err == nil {
			_, err = io.ReadFull(in, word)
		}
		if err != nil {
			return nil, err
		}
		words = append(words, string(word[:len(word)-2]))
	}
	return words, err
}

// No answer ends the process, or has it hold more than the bounds allow. It ends the watch,
// with an error that says why.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	untracked := "-ERR no tracking\r\n"
	says := map[string]struct {
		answers answers
		want    error // nil: any
	}{
		"more values than keys":       {answers{"MGET": {"*3\r\n" + strings.Repeat(bulk("1"), 3)}}, redis.ErrNotRedis},
		"fewer values than keys":      {answers{"MGET": {"*0\r\n"}}, redis.ErrNotRedis},
		"negative count":              {answers{"MGET": {"*-5\r\n"}}, redis.ErrNotRedis},
		"huge count":                  {answers{"MGET": {"*9000000000000000000\r\n"}}, kvdbsync.ErrTooMuch},
		"huge length":                 {answers{"MGET": {"*1\r\n$9000000000000000000\r\n"}}, kvdbsync.ErrTooMuch},
		"nested arrays":               {answers{"MGET": {strings.Repeat("*1\r\n", 30_000_000)}}, redis.ErrNotRedis},
		"nested arrays, at the start": {answers{"HELLO": {strings.Repeat("*1\r\n", 30_000_000)}}, nil},
		"attributes for ever":         {answers{"MGET": {"", "|0\r\n"}}, redis.ErrNotRedis},
		"cursor that never ends":      {answers{"SCAN": {"*2\r\n$1\r\n7\r\n*0\r\n"}}, kvdbsync.ErrTooMuch},
		"the same keys for ever":      {answers{"SCAN": {"*2\r\n$1\r\n7\r\n*1\r\n" + bulk(root+"a")}}, kvdbsync.ErrTooMuch},
		"name that is too large":      {answers{"SCAN": {"*2\r\n$1\r\n0\r\n*1\r\n" + bulk(strings.Repeat("k", 2<<20))}}, kvdbsync.ErrTooMuch},
		"line without an end":         {answers{"SCAN": {"+", strings.Repeat("x", 1<<10)}}, redis.ErrNotRedis},
		"pushes for ever":             {answers{"SCAN": {"", ">2\r\n+news\r\n+x\r\n"}}, nil},
		"keys named for ever":         {answers{"PING": {"", ">2\r\n+invalidate\r\n*1\r\n" + bulk(root+strings.Repeat("x", 10_000))}}, nil},
		"push without a kind":         {answers{"CLIENT": {untracked}, "PING": {">1\r\n:1\r\n"}}, nil},
		"push without elements":       {answers{"CLIENT": {untracked}, "PING": {">0\r\n"}}, nil},
		"message without a payload":   {answers{"CLIENT": {untracked}, "PING": {">2\r\n+message\r\n+x\r\n"}}, guard.ErrPanic},
		"notification of numbers":     {answers{"CLIENT": {untracked}, "PING": {">4\r\n+pmessage\r\n:1\r\n:2\r\n:3\r\n"}}, guard.ErrPanic},
		"pong without a payload":      {answers{"CLIENT": {untracked}, "PING": {"*1\r\n+pong\r\n"}}, guard.ErrPanic},
		"pongs for ever":              {answers{"PING": {"", "+PONG\r\n"}}, nil},
	}
	for name, test := range says {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			cfg := hostile(t, test.answers)
			if strings.HasPrefix(name, "push without") { // after which the server says nothing
				cfg.ReadTimeout = time.Second
			}
			var last error
			err := guard.Run(func() error {
				for _, err := range redis.New(cfg, discard()).Watch(ctx, root) {
					if last = err; err != nil {
						return nil
					}
				}
				return nil
			})
			if err != nil || last == nil || ctx.Err() != nil || test.want != nil && !errors.Is(last, test.want) {
				t.Errorf("ended with %v (%v, %v), want %v", last, err, ctx.Err(), test.want)
			}
		})
	}
}

// A node of a Valkey Cluster that refuses HELLO has no redis_mode in INFO, and a proxy may know no HELLO at all. Each is
// refused with a sentence that says why.
func TestServersThatAreNoRedis(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	about := "# Server\r\nredis_version:7.2.4\r\nserver_mode:cluster\r\n# Cluster\r\ncluster_enabled:1\r\n"
	valkey := answers{"HELLO": {"-NOPERM this user has no permissions to run the 'hello' command\r\n"}, "INFO": {bulk(about)}}
	proxy := func(conn net.Conn) {
		if _, err := readCommand(bufio.NewReader(conn)); err != nil {
			return // closes the connection at once, too
		}
	}
	for want, cfg := range map[string]redis.Config{
		"is a node of a Cluster":                              hostile(t, valkey),
		"closed the connection at the command HELLO; a proxy": {Endpoint: listening(t, proxy), Bounds: tightBounds},
	} {
		var last error
		for _, err := range redis.New(cfg, discard()).Watch(ctx, root) {
			if last = err; err != nil {
				break
			}
		}
		if last == nil || !strings.Contains(last.Error(), want) {
			t.Errorf("the watch ends with %v; expected %q", last, want)
		}
	}
}

// A server that names keys without end, of which none is there, has the source keep none of them.
func TestNamesWithoutValues(t *testing.T) {
	t.Parallel()
	cfg := hostile(t, answers{"SCAN": {"*2\r\n$1\r\n7\r\n*2\r\n" + bulk(root+"a") + bulk(root+"b")}, "MGET": {"*2\r\n_\r\n_\r\n"}, "GET": {"_\r\n"}})
	var last error
	for b, err := range redis.New(cfg, discard()).Watch(t.Context(), root) {
		if last = err; len(b.Events) > 0 {
			t.Fatalf("events of keys that are not there: %v", b.Events)
		}
	}
	if !errors.Is(last, kvdbsync.ErrTooMuch) {
		t.Errorf("ended with %v, want %v", last, kvdbsync.ErrTooMuch)
	}
}

// Sentinels and nodes of a Cluster are no better.
func TestHostileGroup(t *testing.T) {
	t.Parallel()
	slots := func(text string) answers {
		return answers{"CLUSTER": {text}, "COMMAND": {"*0\r\n"}}
	}
	for name, test := range map[string]struct {
		answers answers
		master  string
	}{
		"sentinel without an address": {answers{"SENTINEL": {"*2\r\n" + bulk("config-epoch") + bulk("1")}}, "m"},
		"sentinel with an odd list":   {answers{"SENTINEL": {"*3\r\n" + bulk("ip") + bulk("1") + bulk("port")}}, "m"},
		"sentinel with nesting":       {answers{"SENTINEL": {strings.Repeat("*1\r\n", 30_000_000)}}, "m"},
		"negative count of slots":     {slots("*-5\r\n"), ""},
		"huge count of slots":         {slots("*9000000000000000000\r\n"), ""},
		"slots without nodes":         {slots("*1\r\n*2\r\n:0\r\n:16383\r\n"), ""},
		"slots out of range":          {slots("*1\r\n*3\r\n:-9000000000\r\n:9000000000\r\n*2\r\n" + bulk("127.0.0.1") + ":1\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hostile(t, test.answers)
			cfg.Endpoints, cfg.Endpoint, cfg.MasterName = []string{cfg.Endpoint}, "", test.master
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			var last error
			for _, err := range redis.New(cfg, discard()).Watch(ctx, root) {
				last = err
			}
			if last == nil {
				t.Error("the watch ended without an error")
			}
			client := dial(t, cfg)
			_, _ = client.Get(ctx, root+"a") // which may be answered
		})
	}
}

// A value that is too large is dropped while it is read, wherever it is met; all others
// are read, the last valid value is not lost, and the key is back once it is smaller.
func TestValueThatIsTooLarge(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, _ *redis.Connector) {
		s.put(root+"before", strings.Repeat("x", 3<<20))
		s.put(root+"small", "1")
		cfg := redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Bounds: tightBounds}
		next, stop := iter.Pull2(redis.New(cfg, discard()).Watch(s.ctx(), root))
		defer stop()
		w := watched{t, next}
		got := map[string]string{}
		note := func(b kvdbsync.Batch) {
			for _, e := range b.Events {
				if got[e.Key] = string(e.Value); e.Err != nil {
					got[e.Key] = e.Err.Error()
				}
			}
		}
		expect := func(key, want string) {
			t.Helper()
			if got[root+key] != want {
				t.Errorf("%s: %.100s, want %s", key, got[root+key], want)
			}
		}
		for b := w.read(); ; b = w.read() {
			if note(b); b.Synced {
				break
			}
		}
		expect("before", "too large: the value has 3145728 bytes; max-value-size allows 1048576")
		expect("small", "1")
		s.put(root+"small", strings.Repeat("x", 2<<20))
		note(w.read())
		expect("small", "too large: the value has 2097152 bytes; max-value-size allows 1048576")
		s.put(root+"before", "2")
		note(w.read())
		expect("before", "2")

		client := dial(t, redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.redis.Addr, Bounds: tightBounds})
		if _, err := client.Get(s.ctx(), root+"small"); !errors.Is(err, kvdbsync.ErrTooMuch) || !strings.Contains(err.Error(), root+"small") {
			t.Errorf("Get: %v", err)
		}
		if _, err := client.List(s.ctx(), root); !errors.Is(err, kvdbsync.ErrTooMuch) || !strings.Contains(err.Error(), root+"small") {
			t.Errorf("List: %v", err)
		}
	})
}

// More values than fit into a page are read in several, in each way of reading.
func TestMoreThanAPage(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s *server, _ *redis.Connector) {
		value := strings.Repeat("x", 1_000_000)
		var pairs []string
		for i := range 12 { // of which 8 fit
			s.put(fmt.Sprintf("%s%02d", root, i), value)
			pairs = append(pairs, fmt.Sprintf("%02d", i), value)
		}
		cfg := redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Bounds: tightBounds}
		m := follow(t, redis.New(cfg, discard()))
		m.Await(pairs...)
		listed, err := dial(t, redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.redis.Addr, Bounds: tightBounds}).List(s.ctx(), root)
		if err != nil || len(listed) != 12 {
			t.Errorf("by hand %d pairs, %v", len(listed), err)
		}
	})
}

// Ten values of 100 MB are nowhere in the agent's memory.
func TestLargeValuesTakeNoMemory(t *testing.T) {
	s := join(t, testkit.StartRedis(t, testkit.RedisOptions{}))
	for i := range 5 { // without sending them
		s.do("SETRANGE", fmt.Sprint(root, i), 100<<20, "x")
	}
	s.put(root+"small", "1")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := conformance.ListingOf(t, redis.New(redis.Config{Endpoint: s.redis.Addr, ReadTimeout: time.Minute}, discard()), root)
	runtime.ReadMemStats(&after)
	if b.Keys != 6 {
		t.Errorf("%d keys", b.Keys)
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 20<<20 {
		t.Errorf("a listing with 500 MB of values that are too large allocated %d bytes", bytes)
	}
}

package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis/internal/info"
	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A talk is a connection on which a server says something and then hangs up.
type talk struct {
	net.Conn
	io.Reader
}

func (t talk) Read(p []byte) (int, error)     { return t.Reader.Read(p) }
func (talk) Write(p []byte) (int, error)      { return len(p), nil }
func (talk) Close() error                     { return nil }
func (talk) SetDeadline(time.Time) error      { return nil }
func (talk) SetReadDeadline(time.Time) error  { return nil }
func (talk) SetWriteDeadline(time.Time) error { return nil }
func (talk) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (talk) LocalAddr() net.Addr              { return &net.TCPAddr{} }

// tight are bounds that tests reach with few bytes: 2 MiB, 8 MiB and 16 MiB.
var tight = kvdbsync.Bounds{Value: 2 << 20, Page: 8 << 20, Listing: 16 << 20}

func guardedText(text io.Reader, alone bool) (string, error) {
	got, err := io.ReadAll(newLimiter(talk{Reader: text}, tight, alone))
	return string(got), err
}

func TestWellFormedAnswersPass(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n", "*0\r\n",
		"$0\r\n\r\n", "$5\r\na\r\nbc\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n+next\r\n", "%1\r\n+a\r\n~1\r\n+b\r\n", ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
		"$1500000\r\n" + strings.Repeat("x", 1_500_000) + "\r\n+OK\r\n",
	} {
		for _, alone := range []bool{false, true} {
			if got, err := guardedText(strings.NewReader(text), alone); got != text || err != nil {
				t.Errorf("%.50q: %.50q, %v", text, got, err)
			}
			if got, err := guardedText(iotest.OneByteReader(strings.NewReader(text)), alone); got != text || err != nil {
				t.Errorf("%.50q, byte by byte: %.50q, %v", text, got, err)
			}
		}
	}
}

func TestWhatIsNoAnswerEndsTheConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"negative length":          {"$-2\r\n", ErrNotRedis},
		"negative count":           {"*-2\r\n", ErrNotRedis},
		"length that is no number": {"$many\r\n", ErrNotRedis},
		"length beyond 64 bits":    {"$99999999999999999999\r\n", ErrNotRedis},
		"huge length":              {"$9223372036854775807\r\n", kvdbsync.ErrTooMuch},
		"huge count":               {"*9223372036854775807\r\n", kvdbsync.ErrTooMuch},
		"huge map":                 {"%4611686018427387904\r\n", kvdbsync.ErrTooMuch},
		"count beyond the page":    {"*1000000\r\n", kvdbsync.ErrTooMuch},
		"huge error":               {"!1000000\r\n", ErrNotRedis},
		"deep arrays":              {strings.Repeat("*1\r\n", 30_000_000), ErrNotRedis},
		"attributes for ever":      {strings.Repeat("|0\r\n", 1000), ErrNotRedis},
		"line without an end":      {"+" + strings.Repeat("x", 1<<20), ErrNotRedis},
		"streamed string":          {"$?\r\n", ErrNotRedis},
		"another protocol":         {"HTTP/1.1 400 Bad Request\r\n", ErrNotRedis},
		"line without a carriage":  {"+OK\n", ErrNotRedis},
		"empty lines":              {"\r\n\r\n", ErrNotRedis},
		"elements for ever":        {"*131000\r\n" + strings.Repeat("+"+strings.Repeat("x", 100)+"\r\n", 200_000), kvdbsync.ErrTooMuch},
	} {
		t.Run(name, func(t *testing.T) {
			for _, alone := range []bool{false, true} {
				got, err := guardedText(strings.NewReader(test.text), alone)
				if !errors.Is(err, test.want) {
					t.Errorf("%v, want %v", err, test.want)
				}
				if int64(len(got)) > tight.Page {
					t.Errorf("%d bytes came through", len(got))
				}
			}
		})
	}
}

// A string that is too large comes through as its mark, and what follows is read.
func TestALargeStringIsDropped(t *testing.T) {
	t.Parallel()
	large := "$3000000\r\n" + strings.Repeat("x", 3_000_000) + "\r\n"
	for _, text := range []string{large + "+next\r\n", "*2\r\n" + large + "+next\r\n", "=" + large[1:] + "+next\r\n"} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text))} {
			got, err := guardedText(r, false)
			instead := dropped{size: 3_000_000}.mark()
			if err != nil || !strings.Contains(got, "\r\n"+instead+"\r\n+next\r\n") || len(got) > 1000 {
				t.Errorf("%.200q, %v", got, err)
			}
		}
	}
	// Of a pipeline, what fits into a page comes, and the rest can be asked for again.
	some := "$1500000\r\n" + strings.Repeat("x", 1_500_000) + "\r\n"
	got, err := guardedText(strings.NewReader(strings.Repeat(some, 8)+"+next\r\n"), false)
	noRoom := dropped{size: 1_500_000, noRoom: true}.mark()
	if n := strings.Count(got, noRoom); err != nil || n != 6 || !strings.HasSuffix(got, "+next\r\n") {
		t.Errorf("%d of 8 strings of 1.5 MB were dropped, %v; want 6", n, err)
	}
}

// The strings of one page have a bound of their own. A page may be larger, as very many small
// values are.
func TestLargeStringsOfAPage(t *testing.T) {
	t.Parallel()
	const size = 3_000_000
	some := fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size))
	for alone, want := range map[bool]int{false: 4, true: 0} {
		text := strings.NewReader("*5\r\n" + strings.Repeat(some, 5))
		got, err := io.ReadAll(newLimiter(talk{Reader: text}, kvdbsync.Bounds{}, alone))
		noRoom := dropped{size: size, noRoom: true}.mark()
		if n := strings.Count(string(got), noRoom); err != nil || n != want {
			t.Errorf("alone %v: %d of 5 strings of 3 MB were dropped, %v; want %d", alone, n, err, want)
		}
	}
}

// A read that takes too long does not lose what has come.
func TestATimeoutLosesNothing(t *testing.T) {
	t.Parallel()
	parts := []string{"*2", "\r\n$", "3\r", "\nab", "c\r\n", ":1\r", "\n"}
	var say []io.Reader
	for _, part := range parts {
		say = append(say, strings.NewReader(part), iotest.ErrReader(os.ErrDeadlineExceeded))
	}
	next := 0
	g := newLimiter(talk{Reader: readFunc(func(p []byte) (int, error) {
		if next == len(say) {
			return 0, io.EOF
		}
		n, err := say[next].Read(p)
		if errors.Is(err, io.EOF) || err != nil || n > 0 {
			next++
		}
		return n, err
	})}, tight, false)
	var got bytes.Buffer
	p := make([]byte, 100)
	for {
		n, err := g.Read(p)
		got.Write(p[:n])
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if want := strings.Join(parts, ""); got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// FuzzAnswers has the library read what a server says, through a limiter. What comes through
// is the same however the bytes arrive.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n", "*1\r\n$1\r\nv\r\n", "$-1\r\n", "*-1\r\n", "%1\r\n+role\r\n+master\r\n",
		"*1\r\n*4\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:6379\r\n$2\r\nid\r\n", ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n",
		"*3\r\n$8\r\npmessage\r\n:1\r\n:2\r\n", "*1\r\n:1\r\n", "*0\r\n", "$2000\r\nx", "*1\r\n*1\r\n*1\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", "!3\r\nERR\r\n",
	} {
		f.Add([]byte(text), byte(0))
	}
	bounds := kvdbsync.Bounds{Value: 100, Page: 16 << 10, Listing: 64 << 10}
	f.Fuzz(func(t *testing.T, said []byte, command byte) {
		whole, err := io.ReadAll(newLimiter(talk{Reader: bytes.NewReader(said)}, bounds, false))
		slow, err2 := io.ReadAll(newLimiter(talk{Reader: iotest.OneByteReader(bytes.NewReader(said))}, bounds, false))
		if !bytes.Equal(whole, slow) || (err == nil) != (err2 == nil) {
			t.Fatalf("at once %.100q, %v; byte by byte %.100q, %v", whole, err, slow, err2)
		}
		dial := func(context.Context, string, string) (net.Conn, error) {
			return newLimiter(talk{Reader: io.MultiReader(strings.NewReader("-ERR unknown command\r\n"), bytes.NewReader(said))}, bounds, false), nil
		}
		client := goredis.NewClient(&goredis.Options{Dialer: dial, MaxRetries: -1, DisableIdentity: true, PoolSize: 1})
		defer client.Close()
		ctx := t.Context()
		switch command % 6 {
		case 0:
			_ = scan(ctx, client, "", bounds, func([]string) error { return nil })
		case 1:
			_, _ = newPager(atOnce(client, bounds), &paging.Size{}).all(ctx, []string{"a", "b"}, bounds)
		case 2:
			_, _ = newPager(oneByOne(client, bounds), &paging.Size{}).all(ctx, []string{"a", "b"}, bounds)
		case 3:
			if slots, err := client.ClusterSlots(ctx).Result(); err == nil { //nolint:staticcheck // as the connector
				serve(make([]bool, slotCount), slots, "id")
			}
		case 4:
			about, _ := client.Info(ctx, "stats").Result()
			_, _ = info.ReplicationIDs(about)
			_ = info.Field(about, "evicted_keys")
		case 5:
			n := &node{box: newInbox("", bounds), heard: map[string]struct{}{}, pongs: make(chan struct{}, 1)}
			n.sub = client.PSubscribe(ctx, "*")
			_ = guard.Run(func() error { return n.receive(ctx) })
		}
	})
}

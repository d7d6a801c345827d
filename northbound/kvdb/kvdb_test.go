package kvdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

func TestClientIsTheStoreBehindTheSocket(t *testing.T) {
	ctx := t.Context()
	db := newBolt(t)
	c := client(t, serve(t, map[string]kvdbsync.Store{"bolt": db}), "bolt")

	if _, err := c.Get(ctx, "a"); !errors.Is(err, kvdbsync.ErrNotFound) || !strings.Contains(err.Error(), "key not found: a") {
		t.Errorf("missing key: %v", err)
	}
	values := map[string][]byte{
		"a": []byte("{}"), "a/b c?&=#%2F": []byte("\x00\xff\n"), "a/é": {}, "b": bytes.Repeat([]byte("x"), 4<<20),
	}
	for key, value := range values {
		if err := c.Put(ctx, key, value); err != nil {
			t.Fatal(err)
		}
		stored, err := db.Get(ctx, key)
		if !bytes.Equal(stored, value) || err != nil {
			t.Errorf("%q: stored %.20q, %v", key, stored, err)
		}
		if got, err := c.Get(ctx, key); !bytes.Equal(got, value) || got == nil || err != nil {
			t.Errorf("%q: got %.20q, %v", key, got, err)
		}
	}
	pairs, err := c.List(ctx, "a")
	if err != nil || len(pairs) != 3 || pairs[0].Key != "a" || pairs[2].Key != "a/é" || string(pairs[1].Value) != "\x00\xff\n" || pairs[2].Value == nil {
		t.Errorf("%+v, %v", pairs, err)
	}
	keys, err := c.Keys(ctx, "")
	if err != nil || len(keys) != 4 || keys[0].Value != nil {
		t.Errorf("%.200v, %v", keys, err)
	}
	for _, want := range []bool{true, false} {
		if existed, err := c.Delete(ctx, "a"); existed != want || err != nil {
			t.Errorf("deleted: %v, %v; want %v", existed, err, want)
		}
	}
	if names, err := c.Stores(ctx); !slices.Equal(names, []string{"bolt"}) || err != nil {
		t.Errorf("%v, %v", names, err)
	}
}

// TestApply makes several changes at once, or none.
func TestApply(t *testing.T) {
	ctx, db := t.Context(), newBolt(t)
	socket := serve(t, map[string]kvdbsync.Store{"bolt": db, "files": readOnly{}})
	c := client(t, socket, "bolt")
	for key, text := range map[string]string{"/vnf-agent/x/a": "1", "/vnf-agent/x/b": "2"} {
		if err := c.Put(ctx, key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	err := c.Apply(ctx, []kvdbsync.Pair{{Key: "/vnf-agent/x/a", Value: []byte("3")}, {Key: "/vnf-agent/x/b"}, {Key: "/vnf-agent/x/c", Value: []byte{}}})
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := c.List(ctx, "/vnf-agent/x/")
	if err != nil || len(pairs) != 2 || string(pairs[0].Value) != "3" || pairs[1].Key != "/vnf-agent/x/c" || pairs[1].Value == nil {
		t.Errorf("%+v, %v", pairs, err)
	}
	if err := c.Apply(ctx, []kvdbsync.Pair{{Key: "/vnf-agent/x/d", Value: []byte("4")}, {Key: ""}}); err == nil {
		t.Error("a change without a key is made")
	}
	if _, err := c.Get(ctx, "/vnf-agent/x/d"); !errors.Is(err, kvdbsync.ErrNotFound) {
		t.Errorf("half of the changes are made: %v", err)
	}
	files := client(t, socket, "files")
	if err := files.Apply(ctx, []kvdbsync.Pair{{Key: "a"}}); !errors.Is(err, kvdbsync.ErrReadOnly) {
		t.Errorf("a store that is read only: %v", err)
	}
}

// TestBodyIsOnlyTheValue writes values whose media type and text are those of a form. curl sends the
// first type unless it is told another one.
func TestBodyIsOnlyTheValue(t *testing.T) {
	db := newBolt(t)
	socket := serve(t, map[string]kvdbsync.Store{"bolt": db})
	const multipart = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nother\r\n--x--\r\n"
	for media, body := range map[string]string{
		"application/x-www-form-urlencoded": "key=other&prefix=", "multipart/form-data; boundary=x": multipart,
	} {
		if got := send(t, socket, "PUT", "/v1/stores/bolt/key?key=k", media, body); got != http.StatusOK {
			t.Errorf("%s: status %d", media, got)
		}
		if value, err := db.Get(t.Context(), "k"); string(value) != body || err != nil {
			t.Errorf("%s: the store has %q, %v; want %q", media, value, err, body)
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} { // no body names the key
			if got := send(t, socket, method, "/v1/stores/bolt/key", media, body); got != http.StatusBadRequest {
				t.Errorf("%s: %s without the parameter key: status %d", media, method, got)
			}
		}
		if _, err := db.Get(t.Context(), "other"); !errors.Is(err, kvdbsync.ErrNotFound) {
			t.Errorf("%s: the body has named a key: %v", media, err)
		}
	}
}

// TestReplace compares and writes in one step.
func TestReplace(t *testing.T) {
	ctx, db := t.Context(), newBolt(t)
	socket := serve(t, map[string]kvdbsync.Store{"bolt": db, "files": readOnly{}})
	c := client(t, socket, "bolt")
	const key = "/vnf-agent/x/a"
	if stored, err := c.PutIfSame(ctx, key, nil, []byte("1")); stored || err != nil {
		t.Errorf("a missing key: %v, %v", stored, err)
	}
	if err := c.Put(ctx, key, []byte("1\x00")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} { // the second time, the key holds the new value
		if stored, err := c.PutIfSame(ctx, key, []byte("1\x00"), []byte("2")); stored != want || err != nil {
			t.Errorf("stored: %v, %v; want %v", stored, err, want)
		}
	}
	if now, err := db.Get(ctx, key); string(now) != "2" || err != nil {
		t.Errorf("the key holds %q, %v", now, err)
	}
	if _, err := c.PutIfSame(ctx, "", nil, []byte("1")); err == nil || !strings.Contains(err.Error(), "bad request") {
		t.Errorf("no key: %v", err)
	}
	if _, err := client(t, socket, "files").PutIfSame(ctx, key, nil, nil); !errors.Is(err, kvdbsync.ErrReadOnly) {
		t.Errorf("a store that is read only: %v", err)
	}
}

// readOnly is a store without changes at once.
type readOnly struct{ kvdbsync.Store }

func TestManyKeys(t *testing.T) {
	const n = 100_000
	db := newBolt(t)
	pairs := make([]kvdbsync.Pair, n)
	for i := range pairs {
		pairs[i] = kvdbsync.Pair{Key: fmt.Sprintf("/vnf-agent/vpp1/config/%06d", i), Value: []byte(`{"n": 1}`)}
	}
	if err := db.Apply(t.Context(), pairs); err != nil {
		t.Fatal(err)
	}
	c := client(t, serve(t, map[string]kvdbsync.Store{"bolt": db}), "bolt")
	got, err := c.List(t.Context(), "/vnf-agent/")
	if err != nil || len(got) != n || got[n-1].Key != pairs[n-1].Key || string(got[n-1].Value) != `{"n": 1}` {
		t.Errorf("%d pairs, %v", len(got), err)
	}
}

// Short keys are those of the agent behind the socket, whatever label a client has in mind.
func TestShortKeysAreTheAgents(t *testing.T) {
	ctx, db := t.Context(), newBolt(t)
	socket := filepath.Join(t.TempDir(), "s")
	start(t, &kvdb.Server{Socket: socket, Label: "edge", Stores: map[string]kvdbsync.Store{"bolt": db}})
	c := client(t, socket, "bolt")
	if label, err := c.Label(ctx); label != "edge" || err != nil {
		t.Errorf("label %q, %v", label, err)
	}
	for key, want := range map[string]string{
		"config/a": "/vnf-agent/edge/config/a", "/config/b": "/vnf-agent/edge/config/b", "/vnf-agent/other/config/c": "/vnf-agent/other/config/c",
	} {
		if err := c.Put(ctx, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
		if stored, err := db.Get(ctx, want); string(stored) != key || err != nil {
			t.Errorf("%s: %s has %q, %v", key, want, stored, err)
		}
		if got, err := c.Get(ctx, key); string(got) != key || err != nil {
			t.Errorf("%s: got %q, %v", key, got, err)
		}
		if existed, err := c.Delete(ctx, key); !existed || err != nil {
			t.Errorf("%s: deleted: %v, %v", key, existed, err)
		}
	}
}

func TestErrorsCrossTheSocket(t *testing.T) {
	socket := serve(t, map[string]kvdbsync.Store{"fixed": fixed{}})
	ctx := t.Context()
	c := client(t, socket, "fixed")
	if err := c.Put(ctx, "k", nil); !errors.Is(err, kvdbsync.ErrReadOnly) || err.Error() != "store is read-only: edit a.yaml:1" {
		t.Errorf("read-only: %v", err)
	}
	if _, err := c.Delete(ctx, "k"); !errors.Is(err, kvdbsync.ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	if _, err := c.List(ctx, ""); err == nil || err.Error() != "disk on fire" {
		t.Errorf("failure: %v", err)
	}
	if _, err := client(t, socket, "etcd").Get(ctx, "k"); !errors.Is(err, kvdb.ErrNoStore) || err.Error() != `no such store: "etcd": the agent has fixed` {
		t.Errorf("no store: %v", err)
	}
	if err := c.Put(ctx, "", nil); err == nil || err.Error() != "bad request: parameter key is empty: expected a key" {
		t.Errorf("no key: %v", err)
	}
	if err := c.Put(ctx, "k", make([]byte, kvdb.MaxValue+1)); err == nil || err.Error() != "value: too large: expected at most 67108864 bytes" {
		t.Errorf("too large: %v", err)
	}

	status := map[string]int{
		"GET /v1/stores/fixed/key?key=absent": 404, "GET /v1/stores/none/keys": 404, "PUT /v1/stores/fixed/key?key=k": 405,
		"GET /v1/stores/fixed/key": 400, "GET /v1/stores/fixed/keys": 500, "POST /v1/stores": 405, "GET /": 404,
	}
	for request, want := range status {
		method, path, _ := strings.Cut(request, " ")
		if got := ask(t, socket, method, path); got != want {
			t.Errorf("%s: status %d, want %d", request, got, want)
		}
	}
}

func TestSocketIsForItsOwnerAndGoesWithTheServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "deep", "vpp1.sock")
	ended := run(t, socket)
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := ended(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	c := client(t, socket, "bolt")
	if _, err := c.Get(t.Context(), "k"); !errors.Is(err, kvdb.ErrNoAgent) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestWhatIsAtThePlaceOfTheSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "vpp1.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if _, err := client(t, socket, "bolt").Get(t.Context(), "k"); !errors.Is(err, kvdb.ErrNoAgent) {
		t.Errorf("nobody listens: %v", err)
	}

	run(t, socket) // replaces it
	living := kvdb.Server{Socket: socket}
	if err := living.Run(t.Context()); !errors.Is(err, kvdb.ErrInUse) || !strings.Contains(err.Error(), socket) ||
		!strings.Contains(err.Error(), fmt.Sprint("pid ", os.Getpid())) {
		t.Errorf("two at once: %v", err)
	}
	if _, err := client(t, socket, "none").Stores(t.Context()); err != nil {
		t.Errorf("the first one suffered: %v", err)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := kvdb.Server{Socket: file}
	if err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("a file: %v", err)
	}
	if text, err := os.ReadFile(file); string(text) != "precious" || err != nil {
		t.Errorf("the file became %q, %v", text, err)
	}
	long := kvdb.Server{Socket: "/tmp/" + strings.Repeat("x", 200)}
	if err := long.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "expected at most 107") {
		t.Errorf("a long path: %v", err)
	}
}

func TestSocketIsTakenBeforeItIsServed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	first, second := kvdb.Server{Socket: socket}, kvdb.Server{Socket: socket}
	if err := first.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(t.Context()); !errors.Is(err, kvdb.ErrInUse) {
		t.Errorf("two at once: %v", err)
	}
	second.Close()
	end := start(t, &first)
	if _, err := client(t, socket, "none").Stores(t.Context()); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	first.Close()

	if err := second.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.Close() // Run was never reached
	if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestBrokenListingIsNoShortOne(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"key":"a","value":""}`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})}
	go web.Serve(l)
	defer web.Close()
	if pairs, err := client(t, socket, "bolt").List(t.Context(), ""); err == nil {
		t.Errorf("%v", pairs)
	}
}

// What is served beside the stores is not in their way, nor behind them.
func TestBeside(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	start(t, &kvdb.Server{
		Socket: socket, Stores: map[string]kvdbsync.Store{"fixed": fixed{}},
		Beside: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
	})
	for path, want := range map[string]int{
		"/scheduler/stats": http.StatusTeapot, "/": http.StatusTeapot,
		"/v1/stores": http.StatusOK, "/v1/none": http.StatusNotFound,
	} {
		if got := ask(t, socket, http.MethodGet, path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// Calls of gRPC, and only they, are served beside everything else.
func TestCalls(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	calls := grpc.NewServer()
	healthpb.RegisterHealthServer(calls, health.NewServer())
	start(t, &kvdb.Server{Socket: socket, Stores: map[string]kvdbsync.Store{"fixed": fixed{}}, Calls: calls})
	conn, err := grpc.NewClient(reach.Target, reach.Through(socket)...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", got, err)
	}
	if names, err := client(t, socket, "").Stores(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
}

// A stream that ends with Ending is complete for its reader: nothing cuts it off.
func TestStreamsEnd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ending, reached := make(chan struct{}), make(chan struct{})
	end := start(t, &kvdb.Server{
		Socket: socket, Ending: ending,
		Beside: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(reached)
			<-ending
			_, _ = io.WriteString(w, "the end")
		}),
	})
	answered := make(chan int, 1)
	go func() { answered <- ask(t, socket, http.MethodGet, "/events") }()
	<-reached
	if err := end(); err != nil {
		t.Error(err)
	}
	if got := <-answered; got != http.StatusOK {
		t.Errorf("the stream ended with %d", got)
	}
}

// fixed is a store that cannot be written, and that cannot be listed.
type fixed struct{}

func (fixed) Get(context.Context, string) ([]byte, error) {
	return nil, fmt.Errorf("wrapped: %w", kvdbsync.ErrNotFound)
}
func (fixed) List(context.Context, string) ([]kvdbsync.Pair, error) {
	return nil, errors.New("disk on fire")
}
func (fixed) Put(context.Context, string, []byte) error {
	return fmt.Errorf("%w: edit a.yaml:1", kvdbsync.ErrReadOnly)
}
func (fixed) Delete(context.Context, string) (bool, error) { return true, kvdbsync.ErrReadOnly }

func newBolt(t *testing.T) *bolt.DB {
	db, err := bolt.New(bolt.Config{Path: filepath.Join(t.TempDir(), "keys.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func serve(t *testing.T, stores map[string]kvdbsync.Store) (socket string) {
	socket = filepath.Join(t.TempDir(), "s")
	start(t, &kvdb.Server{Socket: socket, Stores: stores})
	return socket
}

func run(t *testing.T, socket string) (end func() error) {
	return start(t, &kvdb.Server{Socket: socket})
}

// start runs a server until end is called, or the test ends.
func start(t *testing.T, s *kvdb.Server) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	s.Ready = ready
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(testkit.Patience):
		t.Fatal("the server does not start")
	}
	end = func() error {
		cancel()
		err := <-ended
		ended <- nil
		return err
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return end
}

func client(t *testing.T, socket, store string) *kvdb.Client {
	c := kvdb.NewClient(socket, store)
	t.Cleanup(c.Close)
	return c
}

// ask returns the status of a plain request.
func ask(t *testing.T, socket, method, path string) int {
	t.Helper()
	return send(t, socket, method, path, "", "")
}

// send returns the status of a request with a body of a media type.
func send(t *testing.T, socket, method, path, media, body string) int {
	t.Helper()
	web := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	answer, err := web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

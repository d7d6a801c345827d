package consul_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

const root = "/vnf-agent/vpp1/"

func follow(t *testing.T, c kvdbsync.Connector) *conformance.Mirror {
	t.Helper()
	return conformance.Follow(t, c, root)
}

// begin is a watch read batch by batch, whose listing has been read.
func (s *server) begin(cfg consul.Config) (listing kvdbsync.Batch, next func() kvdbsync.Batch) {
	s.t.Helper()
	pull, stop := iter.Pull2(connect(cfg).Watch(s.ctx(), root))
	s.t.Cleanup(stop)
	next = func() kvdbsync.Batch {
		s.t.Helper()
		b, err, ok := pull()
		if err != nil || !ok {
			s.t.Fatalf("the watch ended: %v", err)
		}
		return b
	}
	return next(), next
}

// ended is why a watch ends that must not go on.
func ended(t *testing.T, c kvdbsync.Connector, prefix string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for _, err := range c.Watch(ctx, prefix) {
		if err != nil {
			return err
		}
	}
	return errNothing
}

// TestWatch has one server for what leaves it as good as new.
func TestWatch(t *testing.T) {
	t.Parallel()
	c := testkit.StartConsul(t, testkit.ConsulOptions{})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"a transaction is one batch", transactionIsOneBatch},
		{"only what differs is yielded", onlyWhatDiffersIsYielded},
		{"a wait that runs out", waitThatRunsOut},
		{"empty values and folders", emptyValuesAndFolders},
		{"keys that are not UTF-8", keysThatAreNotUTF8},
		{"a snapshot is restored", snapshotRestored},
		{"another server behind the same address", anotherServer},
		{"a server that lost its data", serverThatLostItsData},
		{"one silent connection", oneSilentConnection},
		{"a slow line", slowLine},
		{"a listing that stops", listingThatStops},
		{"a store that is not there", storeThatIsNotThere},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := join(t, c)
			_, err := s.client.KV().DeleteTree("", nil)
			must(t, s, err)
			test.run(t, s)
		})
	}
}

func anotherServer(t *testing.T, s *server) {
	other := start(t)
	s.put(root+"a", "1")
	other.put(root+"b", "1")
	m := follow(t, s.connector())
	m.Await("a", "1")
	s.line.Retarget(other.consul.Addr)
	s.line.Set(testkit.Reset)
	s.line.Set(testkit.Pass)
	m.Await("b", "1")
}

func serverThatLostItsData(t *testing.T, s *server) {
	s.put(root+"a", "1")
	s.put(root+"b", "1")
	m := follow(t, s.connector())
	m.Await("a", "1", "b", "1")
	s.consul.Kill()
	s.consul.Wipe()
	s.consul.Start()
	s.put(root+"b", "2")
	m.Await("b", "2")
	s.put(root+"c", "1")
	m.Await("b", "2", "c", "1")
}

// An administrator restores a snapshot; nobody's connection breaks. Consul answers
// with what it held before, and then would wait for the old index.
func snapshotRestored(t *testing.T, s *server) {
	s.put(root+"kept", "1")
	s.put(root+"changed", "1")
	s.put(root+"deleted", "1")
	snapshot, _, err := s.client.Snapshot().Save(nil)
	saved := must(t, snapshot, err)
	content, err := io.ReadAll(saved)
	must(t, saved, err)
	s.put(root+"changed", "2")
	s.delete(root + "deleted")
	s.put(root+"new", "1")
	m := follow(t, s.connector())
	m.Await("kept", "1", "changed", "2", "new", "1")
	if err := s.client.Snapshot().Restore(nil, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	m.Await("kept", "1", "changed", "1", "deleted", "1")
	s.put(root+"changed", "3")
	m.Await("kept", "1", "changed", "3", "deleted", "1")
	if h := m.Source.Health(); h.Err != nil {
		t.Errorf("the watch ended: %v", h.Err)
	}
}

// What changes at once is one batch, with the index of the transaction.
func transactionIsOneBatch(t *testing.T, s *server) {
	s.put(root+"old", "1")
	_, next := s.begin(s.config())
	var group []kvdbsync.Event
	for i := range kvdbsync.MaxApply - 1 {
		group = append(group, kvdbsync.Event{Key: fmt.Sprintf("%s%02d", root, i), Value: []byte("x")})
	}
	s.txn(append(group, kvdbsync.Event{Key: root + "old"}))
	b := next()
	if len(b.Events) != kvdbsync.MaxApply || b.Rev == 0 || b.Synced {
		t.Fatalf("a batch of %d at %d, want %d", len(b.Events), b.Rev, kvdbsync.MaxApply)
	}
	for _, e := range b.Events {
		if e.Rev != b.Rev {
			t.Errorf("%s has index %d, the batch %d", e.Key, e.Rev, b.Rev)
		}
	}
	if last := b.Events[len(b.Events)-1]; last.Key != root+"old" || last.Value != nil {
		t.Errorf("the last event is %+v, want that old is gone", last)
	}
}

// An answer is not a change: only what differs comes out of it.
func onlyWhatDiffersIsYielded(t *testing.T, s *server) {
	for i := range 100 {
		s.put(fmt.Sprintf("%s%02d", root, i), "x")
	}
	listing, next := s.begin(s.config())
	if len(listing.Events) != 100 || !listing.Synced {
		t.Fatalf("a listing of %d, synced: %v", len(listing.Events), listing.Synced)
	}
	s.put(root+"50", "y")
	if b := next(); len(b.Events) != 1 || b.Events[0].Key != root+"50" || string(b.Events[0].Value) != "y" {
		t.Errorf("%d events: %+v", len(b.Events), b.Events)
	}
}

// When the time to wait is over Consul answers though nothing has changed.
func waitThatRunsOut(t *testing.T, s *server) {
	s.put(root+"a", "1")
	cfg := s.config()
	cfg.WaitTime = 50 * time.Millisecond
	noNewsThenOne(t, s, cfg)
}

// The server does not wait for as long as it was asked to.
func TestServerWithShorterWait(t *testing.T) {
	t.Parallel()
	s := join(t, testkit.StartConsul(t, testkit.ConsulOptions{Config: map[string]any{"max_query_time": "50ms"}}))
	s.put(root+"a", "1")
	noNewsThenOne(t, s, s.config())
}

func noNewsThenOne(t *testing.T, s *server, cfg consul.Config) {
	t.Helper()
	_, next := s.begin(cfg)
	for range 3 {
		if b := next(); len(b.Events) > 0 || b.Synced {
			t.Fatalf("an answer without a change came out as %+v", b)
		}
	}
	s.put(root+"a", "2")
	for {
		if b := next(); len(b.Events) == 1 && string(b.Events[0].Value) == "2" {
			return
		}
	}
}

func emptyValuesAndFolders(t *testing.T, s *server) {
	s.put(root+"config/", "")
	s.put(root+"listed", "")
	m := follow(t, s.connector())
	m.Await("listed", "")
	s.put(root+"changed", "")
	s.put(root+"config/linux/", "")
	s.put(root+"last", "1")
	m.Await("listed", "", "changed", "", "last", "1")
}

// Consul shows such keys as others than they are, and may show two of them alike. They cost
// nothing but themselves.
func keysThatAreNotUTF8(t *testing.T, s *server) {
	s.put(root+"a", "1")
	s.put(root+"x\xe8", "1") // sorts before the next one, and is shown as one that sorts behind it
	s.put(root+"x\u9999", "1")
	s.put(root+"x\xe8/", "") // a folder
	listing, next := s.begin(s.config())
	if len(listing.Events) != 2 || !listing.Synced {
		t.Errorf("the listing is %+v", listing)
	}
	b := listing
	for _, step := range []struct {
		change func()
		begins string // of the problem
	}{
		{func() {}, `"` + root + "x\ufffd" + `" is ignored: a key with bytes that are not UTF-8`},
		{func() { s.put(root+"x\xe9", "1") }, "2 keys are ignored, such as "},
		{func() { s.delete(root + "x\xe8") }, `"` + root + "x\ufffd" + `" is ignored`},
		{func() { s.delete(root + "x\xe9") }, ""},
	} {
		step.change()
		for b.Problems == nil {
			b = next()
		}
		if got := fmt.Sprint(b.Problems); !strings.HasPrefix(got, "["+step.begins) || (len(b.Problems) == 0) != (step.begins == "") {
			t.Errorf("the problems are %q, want %q", got, step.begins)
		}
		b = kvdbsync.Batch{}
	}
	s.put(root+"a", "2")
	for len(b.Events) == 0 {
		b = next()
	}
	if b.Problems != nil || len(b.Events) != 1 || string(b.Events[0].Value) != "2" {
		t.Errorf("afterwards came %+v", b)
	}
	if pairs, err := s.dial().List(s.ctx(), root); err != nil || len(pairs) != 2 {
		t.Errorf("List: %q, %v", pairs, err)
	}
}

func storeThatIsNotThere(t *testing.T, s *server) {
	s.put(root+"a", "1")
	s.consul.Stop()
	m := follow(t, s.connector())
	err := ended(t, connect(consul.Config{Address: s.consul.Addr}), root)
	if !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), s.consul.Addr) {
		t.Errorf("got %v, want the address and the reason", err)
	}
	m.AwaitLost(conformance.Any)
	s.consul.Start()
	m.Await("a", "1")
}

// A server that hangs keeps its connections open; so does a line that swallows
// everything.
func TestSilenceIsNoticed(t *testing.T) {
	silences := map[string]struct{ begin, end func(*server) }{
		"server stopped": {func(s *server) { s.consul.Pause() }, func(s *server) { s.consul.Continue() }},
		"black hole":     {func(s *server) { s.line.Set(testkit.BlackHole) }, func(s *server) { s.line.Set(testkit.Pass) }},
	}
	t.Parallel()
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.put(root+"a", "1")
			cfg := s.config()
			cfg.OperationTimeout, cfg.ProbeInterval = 2*time.Second, time.Second
			m := follow(t, connect(cfg))
			m.Await("a", "1")
			s.put(root+"a", "2")
			m.Await("a", "2") // now it is the waiting that is silenced, not the listing
			silence.begin(s)
			m.AwaitLost(func(err error) bool { return strings.Contains(err.Error(), "no answer within 2s") })
			silence.end(s)
			s.put(root+"a", "3")
			m.Await("a", "3")
		})
	}
}

// A load balancer goes on to acknowledge what comes on the connection that waits, and hands
// nothing on. All other connections work.
func oneSilentConnection(t *testing.T, s *server) {
	s.put(root+"a", "1")
	cfg := s.config()
	cfg.ProbeInterval = 200 * time.Millisecond
	m := follow(t, connect(cfg))
	m.Await("a", "1")
	s.put(root+"a", "2")
	m.Await("a", "2") // the connection waits
	if n := s.line.Silence("index="); n != 1 {
		t.Fatalf("%d connections wait, want 1", n)
	}
	s.put(root+"a", "3")
	m.AwaitLost(func(err error) bool { return errors.Is(err, consul.ErrSilent) })
	m.Await("a", "3")
}

// fill puts n keys of about a kilobyte, and returns them as Await wants them.
func (s *server) fill(n int) (pairs []string) {
	s.t.Helper()
	value := strings.Repeat("x", 1<<10)
	for i := range n {
		key := fmt.Sprintf("k%04d", i)
		s.put(root+key, value)
		pairs = append(pairs, key, value)
	}
	return pairs
}

// The listing takes several times as long as a request may take.
func slowLine(t *testing.T, s *server) {
	pairs := s.fill(300) // about 450 kB of JSON
	s.line.Slow(100 << 10)
	defer s.line.Slow(0)
	cfg := s.config()
	cfg.OperationTimeout, cfg.ProbeInterval = time.Second, 300*time.Millisecond // longer than a busy machine is silent
	m := follow(t, connect(cfg))
	m.Await(pairs...)
}

// In the middle of the listing its connection falls silent, and new connections work.
func listingThatStops(t *testing.T, s *server) {
	var want []string
	for i := range 32 {
		var group []kvdbsync.Event
		for j := range kvdbsync.MaxApply - 4 {
			key := fmt.Sprintf("k%04d", 100*i+j)
			group = append(group, kvdbsync.Event{Key: root + key, Value: []byte("x")})
			want = append(want, key, "x")
		}
		s.txn(group)
	}
	s.line.Slow(200 << 10)
	defer s.line.Slow(0)
	cfg := s.config()
	cfg.OperationTimeout = 2 * time.Second // longer than a busy machine is silent
	pull, stop := iter.Pull2(connect(cfg).Watch(s.ctx(), root))
	defer stop()
	if b, err, _ := pull(); err != nil || b.Synced || len(b.Events) == 0 {
		t.Fatalf("the first page has %d events, synced: %v, %v", len(b.Events), b.Synced, err)
	}
	if n := s.line.Silence("consistent"); n != 1 {
		t.Fatalf("%d connections list, want 1", n)
	}
	if _, err, _ := pull(); err == nil || !strings.Contains(err.Error(), "no byte for 2s") {
		t.Errorf("ended with %v, want that no byte came for 2s", err)
	}
	s.line.Slow(0)
	follow(t, connect(cfg)).Await(want...)
}

// A server that is cut off from the others would let a watch wait for minutes.
func TestServerWithoutLeader(t *testing.T)      { t.Parallel(); serverWithoutLeader(t, false) }
func TestServerWithoutLeaderStale(t *testing.T) { t.Parallel(); serverWithoutLeader(t, true) }

func serverWithoutLeader(t *testing.T, stale bool) {
	t.Helper()
	servers := testkit.StartConsulCluster(t, 3, testkit.ConsulOptions{})
	s := join(t, servers[0])
	s.stale = stale
	s.put(root+"a", "1")
	m := follow(t, s.connector())
	m.Await("a", "1")
	servers[1].Kill()
	servers[2].Kill()
	err := m.AwaitLost(conformance.Any)
	var status api.StatusError
	if !errors.Is(err, consul.ErrNoLeader) && !(errors.As(err, &status) && status.Code == 500) {
		t.Errorf("lost for %v", err)
	}
	servers[1].Start()
	m.Await("a", "1")
}

// The leader dies; the watch goes on at another server.
func TestLeaderDies(t *testing.T)      { t.Parallel(); leaderDies(t, false) }
func TestLeaderDiesStale(t *testing.T) { t.Parallel(); leaderDies(t, true) }

func leaderDies(t *testing.T, stale bool) {
	t.Helper()
	servers := testkit.StartConsulCluster(t, 3, testkit.ConsulOptions{})
	leader := leaderOf(t, servers)
	other := servers[(leader+1)%len(servers)]
	s := join(t, other)
	s.stale = stale
	m := follow(t, s.connector())
	s.put(root+"a", "1")
	m.Await("a", "1")
	servers[leader].Kill()
	for putOnce(s, root+"a", "2") != nil { // until another leads
	}
	m.Await("a", "2")
}

func putOnce(s *server, key, value string) error {
	_, err := s.client.KV().Put(&api.KVPair{Key: strings.TrimPrefix(key, "/"), Value: []byte(value)}, nil)
	return err
}

func leaderOf(t *testing.T, servers []*testkit.Consul) int {
	t.Helper()
	for i, c := range servers {
		self, err := bareClient(t, c.Addr).Agent().Self()
		if fmt.Sprint(must(t, self, err)["Stats"]["consul"].(map[string]any)["leader"]) == "true" {
			return i
		}
	}
	t.Fatal("no server is the leader")
	return 0
}

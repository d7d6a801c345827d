package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

const root = "/vnf-agent/vpp1/"

func follow(t *testing.T, c kvdbsync.Connector) *conformance.Mirror {
	t.Helper()
	return conformance.Follow(t, c, root)
}

// saying is any reason that says text.
func saying(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

func TestServerThatLostItsData(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 10 {
		s.put(root+"a", fmt.Sprint(i))
	}
	s.put(root+"b", "1")
	m := follow(t, s.connector())
	m.Await("a", "9", "b", "1")
	s.etcd.Kill()
	s.etcd.Wipe()
	s.etcd.Start()
	s.put(root+"b", "2")
	m.Await("b", "2")
	s.put(root+"c", "1")
	m.Await("b", "2", "c", "1")
	if rev := m.Source.Health().Rev; rev != s.revision() {
		t.Errorf("health says revision %d, the server is at %d", rev, s.revision())
	}
}

func TestAnotherClusterBehindTheSameAddress(t *testing.T) {
	t.Parallel()
	one, two := start(t), start(t)
	one.put(root+"a", "1")
	two.put(root+"b", "1")
	m := follow(t, one.connector())
	m.Await("a", "1")
	before := conformance.ListingOf(t, one.connector(), root)
	one.line.Retarget(two.etcd.Addr)
	one.line.Set(testkit.Reset)
	one.line.Set(testkit.Pass)
	m.Await("b", "1")
	if err := conformance.ListingOf(t, one.connector(), root).Succeeds(before); !errors.Is(err, kvdbsync.ErrOtherStore) {
		t.Errorf("the listing of another cluster: %v", err)
	}
}

// Between the listing and the watch the server dies and comes back with less, or as another one: the watch would
// wait for a revision that is years away. The listing has no effect then.
func TestServerReplacedBetweenListingAndWatch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		replace func(s, other *server)
		want    error
	}{
		"another cluster": {func(s, other *server) {
			s.line.Retarget(other.etcd.Addr)
			s.line.Set(testkit.Reset)
			s.line.Set(testkit.Pass)
		}, etcd.ErrOtherCluster},
		"restored": {func(s, _ *server) { s.etcd.Kill(); s.etcd.Wipe(); s.etcd.Start() }, etcd.ErrWentBack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other := start(t), start(t)
			for i := range 10 {
				s.put(root+"a", fmt.Sprint(i))
				other.put(root+"a", fmt.Sprint(i))
			}
			other.put(root+"a", "newer")
			front := testkit.StartGRPCProxy(t, s.line.Addr)
			front.Before(watchMethod, func() { test.replace(s, other) })
			c := etcd.New(etcd.Config{Endpoints: []string{front.Addr}, OperationTimeout: testkit.Patience}, slog.New(slog.DiscardHandler))
			for b, err := range c.Watch(s.ctx(), root) {
				// The connection may be found dead first, which is as good.
				if !errors.Is(err, test.want) && !isUnavailable(err) {
					t.Fatalf("the watch yields %+v, %v; want %v", b, err, test.want)
				}
			}
		})
	}
}

// isUnavailable tells that a server could not be reached, or went away.
func isUnavailable(err error) bool {
	return status.Code(err) == codes.Unavailable
}

func TestCompactionWhileListing(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 25 {
		var group []kvdbsync.Event
		for j := range 100 {
			group = append(group, kvdbsync.Event{Key: fmt.Sprintf("%s%02d%02d", root, i, j), Value: []byte("x")})
		}
		s.txn(group)
	}
	var seen int
	var last error
	for b, err := range s.connector().Watch(s.ctx(), root) {
		if seen == 0 {
			s.put(root+"0000", "y")
			s.compact() // the revision of the first page is gone
		}
		seen += len(b.Events)
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "compacted") || seen > 1000 {
		t.Errorf("after %d keys: %v", seen, last)
	}
}

// All pages are read at the revision of the first, whatever happens meanwhile.
func TestPagesAreOneSnapshot(t *testing.T) {
	t.Parallel()
	s := start(t)
	const keys = 2500
	for i := range keys / 100 {
		var group []kvdbsync.Event
		for j := range 100 {
			group = append(group, kvdbsync.Event{Key: fmt.Sprintf("%s%04d", root, 100*i+j), Value: []byte("old")})
		}
		s.txn(group)
	}
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	synced, changed := false, 0
	var rev int64
	for b, err := range s.connector().Watch(ctx, root) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case rev == 0:
			rev = b.Rev
			s.put(root+"0001", "new") // on the page that was read
			s.put(root+"2400", "new") // on one that was not
		case !synced && b.Rev != rev:
			t.Errorf("a page of revision %d, the first was of %d", b.Rev, rev)
		}
		for _, e := range b.Events {
			if !synced && string(e.Value) != "old" {
				t.Errorf("%s was listed with what came after the first page", e.Key)
			}
			if synced && string(e.Value) == "new" {
				changed++
			}
		}
		synced = synced || b.Synced
		if changed == 2 {
			cancel()
		}
	}
	if changed != 2 {
		t.Errorf("%d changes arrived that were made while listing, want 2", changed)
	}
}

func TestOneTransactionOf10000KeysIsOneBatch(t *testing.T) {
	t.Parallel()
	s := start(t, "--max-txn-ops=20000", "--max-request-bytes=8000000")
	next, stop := iter.Pull2(s.connector().Watch(s.ctx(), root))
	defer stop()
	if b, err, _ := next(); err != nil || !b.Synced {
		t.Fatalf("%+v, %v", b, err)
	}
	value := strings.Repeat("x", 300) // 3 MB in all: more than etcd puts into one message
	var ops []clientv3.Op
	for i := range 10_000 {
		ops = append(ops, clientv3.OpPut(fmt.Sprintf("%sconfig/%05d", root, i), value))
	}
	if _, err := bareClient(t, clientv3.Config{Endpoints: []string{s.etcd.Endpoint}, MaxCallSendMsgSize: 8 << 20}).Txn(s.ctx()).Then(ops...).Commit(); accepted(err) != nil {
		t.Fatal(err)
	}
	if b, err, _ := next(); err != nil || len(b.Events) != 10_000 {
		t.Errorf("a batch of %d, %v", len(b.Events), err)
	}
}

// A watch that has to catch up gets more than fits into one message. etcd cuts it
// where it likes, also in the middle of a transaction.
func TestTransactionsSurviveFragments(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	const txns, keys = 12, 3
	group := make([]kvdbsync.Event, keys)
	for i := range group {
		group[i] = kvdbsync.Event{Key: fmt.Sprint(root, i), Value: []byte(strings.Repeat("x", 400<<10))}
	}
	whole := 0
	for b, err := range s.connector().Watch(ctx, root) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Synced {
			for range txns {
				s.txn(group)
			}
			continue
		}
		if len(b.Events) != keys {
			t.Fatalf("a batch of %d, want the %d of one transaction", len(b.Events), keys)
		}
		if whole++; whole == txns {
			cancel()
		}
	}
}

// fill puts n keys with values of some bytes, and returns them as Await wants them.
func (s *server) fill(n, bytes int) (pairs []string) {
	s.t.Helper()
	value := strings.Repeat("x", bytes)
	for i := range n / 100 {
		var group []kvdbsync.Event
		for j := range 100 {
			key := fmt.Sprintf("k%05d", 100*i+j)
			group = append(group, kvdbsync.Event{Key: root + key, Value: []byte(value)})
			pairs = append(pairs, key, value)
		}
		s.txn(group)
	}
	return pairs
}

// One page takes many times what a request may take.
func TestSlowLine(t *testing.T) {
	t.Parallel()
	s := start(t)
	pairs := s.fill(500, 1000)
	s.line.Slow(400 << 10)
	cfg := etcd.Config{Endpoints: []string{s.line.Addr}, OperationTimeout: 400 * time.Millisecond}
	m := follow(t, etcd.New(cfg, slog.New(slog.DiscardHandler)))
	m.Await(pairs...)
	listed, err := s.dial(cfg).List(s.ctx(), root)
	for late := s.ctx(); err != nil && late.Err() == nil; { // a busy machine is silent for longer than the limit
		listed, err = s.dial(cfg).List(late, root)
	}
	if err != nil || len(listed) != len(pairs)/2 {
		t.Errorf("by hand %d pairs, %v", len(listed), err)
	}
	s.line.Slow(0)
}

// The connection breaks, or falls silent, while pages are read: the listing goes on where
// it was, at the same revision, and reads no key twice.
func TestInterruptedListingGoesOn(t *testing.T) {
	t.Parallel()
	e := testkit.StartEtcd(t, testkit.EtcdOptions{})
	for name, interrupt := range map[string]func(*server){
		"reset":             func(s *server) { s.line.Set(testkit.Reset); s.line.Set(testkit.Pass) },
		"silent connection": func(s *server) { s.line.Silence("") },
	} {
		t.Run(name, func(t *testing.T) {
			s := join(t, e)
			s.fill(2500, 1000)
			cfg := etcd.Config{Endpoints: []string{s.line.Addr}, OperationTimeout: 5 * time.Second} // a listing outlives several silences
			seen := map[string]int{}
			pages := 0
			for b, err := range etcd.New(cfg, slog.New(slog.DiscardHandler)).Watch(s.ctx(), root) {
				if err != nil {
					t.Fatalf("after %d pages: %v", pages, err)
				}
				if pages++; pages == 1 {
					s.put(root+"later", "1") // of a later revision
					interrupt(s)
				}
				for _, e := range b.Events {
					seen[e.Key]++
				}
				if b.Synced {
					break
				}
			}
			if len(seen) != 2500 || pages < 2 {
				t.Errorf("%d keys on %d pages, want 2500 on several", len(seen), pages)
			}
			for key, times := range seen {
				if times != 1 {
					t.Fatalf("%s came %d times", key, times)
				}
			}
			s.delete(root + "later")
		})
	}
}

func TestDeadEndpointBesideALivingOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.put(root+"a", "1")
	dead := testkit.StartProxy(t, s.etcd.Addr)
	dead.Set(testkit.Reset)
	m := follow(t, etcd.New(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{dead.Addr, s.line.Addr}}, slog.New(slog.DiscardHandler)))
	m.Await("a", "1")
	// The watch moves to the other when its own dies.
	dead.Set(testkit.Pass)
	s.line.Set(testkit.Reset)
	s.put(root+"a", "2")
	m.Await("a", "2")
}

func TestStoreThatIsNotThereSaysWhy(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.put(root+"a", "1")
	s.etcd.Stop()
	m := follow(t, s.connector())
	direct := etcd.New(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.etcd.Addr}}, slog.New(slog.DiscardHandler))
	for _, err := range direct.Watch(s.ctx(), root) {
		if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), s.etcd.Addr) {
			t.Errorf("got %v, want the address and the reason", err)
		}
	}
	if err := m.AwaitLost(conformance.Any); !isUnavailable(err) {
		t.Errorf("lost for %v", err)
	}
	s.etcd.Start()
	m.Await("a", "1")
}

// Where nothing changes below the prefix, the server tells how far it has come.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := start(t, "--watch-progress-notify-interval=100ms")
	m := follow(t, s.connector())
	m.Await()
	for range 10 {
		s.put("/elsewhere", "1")
	}
	want, late := s.revision(), s.ctx()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for m.Source.Health().Rev != want {
		select {
		case <-tick.C:
		case <-late.Done():
			t.Fatalf("the server is at %d; health %+v", want, m.Source.Health())
		}
	}
}

// A consumer that takes nothing while much changes finds the newest of all at once.
func TestSlowConsumer(t *testing.T) {
	t.Parallel()
	s := start(t)
	m := follow(t, s.connector())
	m.Await()
	const groups, keys, rounds = 20, 100, 5
	want := map[string]string{}
	for round := range rounds {
		for i := range groups {
			var group []kvdbsync.Event
			for j := range keys {
				name, value := fmt.Sprintf("%02d%02d", i, j), fmt.Sprintf("%d %s", round, strings.Repeat("x", 1000))
				want[name] = value
				group = append(group, kvdbsync.Event{Key: root + name, Value: []byte(value)})
			}
			s.txn(group)
		}
	}
	s.put(root+"last", "1")
	want["last"] = "1"
	for m.Source.Health().Keys < len(want) || m.Source.Health().Rev < s.revision() {
		select {
		case <-m.Source.Ready():
		case <-s.ctx().Done():
			t.Fatalf("health %+v", m.Source.Health())
		}
	}
	if h := m.Source.Health(); h.Waiting != len(want) {
		t.Errorf("%d keys wait, want %d", h.Waiting, len(want))
	}
	c, _ := m.Source.Take()
	for _, e := range c.Events {
		if want[e.Key] != string(e.Value) {
			t.Errorf("%s: %.10q, want %.10q", e.Key, e.Value, want[e.Key])
		}
	}
	if len(c.Events) != len(want) {
		t.Errorf("%d events, want the newest of each of %d keys", len(c.Events), len(want))
	}
}

func TestAnEmptyValueIsNotADeletion(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.put(root+"listed", "")
	m := follow(t, s.connector())
	m.Await("listed", "")
	s.put(root+"changed", "")
	m.Await("listed", "", "changed", "")
}

func TestExpiredLeaseTakesItsKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	lease, err := s.client.Grant(s.ctx(), 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Put(s.ctx(), root+"leased", "1", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	m := follow(t, s.connector())
	m.Await("leased", "1")
	if _, err := s.client.Revoke(s.ctx(), lease.ID); err != nil {
		t.Fatal(err)
	}
	m.Await()
}

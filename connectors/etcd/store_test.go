package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	_ kvdbsync.Connector = (*etcd.Connector)(nil)
	_ kvdbsync.Publisher = (*etcd.Connector)(nil)
	_ kvdbsync.Writer    = (*etcd.Client)(nil)
)

func TestStore(t *testing.T) {
	t.Parallel()
	s := start(t)
	client, err := etcd.Dial(t.Context(), etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.etcd.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := root + "a"
	if _, err := client.Get(t.Context(), key); !errors.Is(err, kvdbsync.ErrNotFound) || !strings.Contains(err.Error(), key) {
		t.Errorf("Get of nothing: %v", err)
	}
	if existed, err := client.Delete(t.Context(), key); existed || err != nil {
		t.Errorf("Delete of nothing: %v, %v", existed, err)
	}
	for _, value := range []string{"1", "", "\x00\xff"} {
		if err := client.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
		if got, err := client.Get(t.Context(), key); string(got) != value || got == nil || err != nil {
			t.Errorf("Get: %q, %v; want %q", got, err, value)
		}
	}
	if existed, err := client.Delete(t.Context(), key); !existed || err != nil {
		t.Errorf("Delete: %v, %v", existed, err)
	}
}

func TestStoreListsByPrefixInOrder(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 21 { // 2100 keys: two pages
		var group []kvdbsync.Event
		for j := range 100 {
			group = append(group, kvdbsync.Event{Key: fmt.Sprintf("%s%02d%02d", root, 20-i, j), Value: []byte("x")})
		}
		s.txn(group)
	}
	s.put(strings.TrimSuffix(root, "/")+"0/a", "beside")
	client, err := etcd.Dial(t.Context(), etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.etcd.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pairs, err := client.List(t.Context(), root)
	if err != nil || len(pairs) != 2100 || pairs[0].Key != root+"0000" || pairs[2099].Key != root+"2099" {
		t.Fatalf("%d pairs, %v", len(pairs), err)
	}
	all, err := client.List(t.Context(), "")
	if err != nil || len(all) != 2101 {
		t.Errorf("of everything: %d pairs, %v", len(all), err)
	}
}

func TestStoreThatCannotBeReached(t *testing.T) {
	t.Parallel()
	client, err := etcd.Dial(t.Context(), etcd.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := root + "a"
	_, getErr := client.Get(t.Context(), key)
	_, listErr := client.List(t.Context(), root)
	_, deleteErr := client.Delete(t.Context(), key)
	for name, err := range map[string]error{"Get": getErr, "List": listErr, "Put": client.Put(t.Context(), key, nil), "Delete": deleteErr} {
		if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), root) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What etcd does not take is told with its key, its size and the limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := s.dial(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.etcd.Addr}})
	pairs := func(n, size int) (all []kvdbsync.Pair) {
		for i := range n {
			all = append(all, kvdbsync.Pair{Key: fmt.Sprint(root, i), Value: make([]byte, size-i)})
		}
		return all
	}
	_, absent := client.PutIfAbsent(s.ctx(), root+"a", make([]byte, 1600<<10))
	for want, err := range map[string]error{
		root + "a in etcd: too much for the store at once: its value has 1638400 bytes":                                      absent,
		root + "b in etcd: too much for the store at once: its value has 8388608 bytes":                                      client.Put(s.ctx(), root+"b", make([]byte, 8<<20)),
		"64 keys, of which " + root + "0 is the largest, in etcd: too much for the store at once: its value has 32768 bytes": client.Apply(s.ctx(), pairs(64, 32<<10)),
		"129 keys, of which " + root + "0 is the largest, in etcd: too much for the store at once: 129 changes":              client.Apply(s.ctx(), pairs(129, 200)),
	} {
		if !errors.Is(err, kvdbsync.ErrTooLarge) || !strings.HasPrefix(err.Error(), "writing "+want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if err := client.Put(s.ctx(), root+"a", make([]byte, 1500<<10)); err != nil {
		t.Error(err)
	}
	if err := client.Apply(s.ctx(), pairs(128, 200)); err != nil {
		t.Error(err)
	}
}

func TestAutoCompact(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.put(root+"a", "1")
	s.put(root+"a", "2")
	old := s.revision() - 1
	c := etcd.New(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.etcd.Addr}, AutoCompact: 10 * time.Millisecond}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(s.ctx())
	done := make(chan error)
	go func() { done <- c.AutoCompact(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for {
		if _, err := s.client.Get(ctx, root+"a", clientv3.WithRev(old)); err != nil {
			if !strings.Contains(err.Error(), "compacted") {
				t.Fatal(err)
			}
			break
		}
	}
}

func TestAutoCompactIsOffByDefault(t *testing.T) {
	t.Parallel()
	if err := etcd.New(etcd.Config{}, nil).AutoCompact(t.Context()); err != nil {
		t.Error(err)
	}
}

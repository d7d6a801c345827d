package etcd_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// A member that is cut off from the others would let a watch wait for ever.
func TestMemberWithoutLeader(t *testing.T) {
	t.Parallel()
	members := testkit.StartEtcdCluster(t, 3, testkit.EtcdOptions{})
	client := bareClient(t, clientv3.Config{Endpoints: []string{members[0].Endpoint}})
	put := func(value string) {
		t.Helper()
		if _, err := client.Put(t.Context(), root+"a", value); err != nil {
			t.Fatal(err)
		}
	}
	put("1")
	m := follow(t, etcd.New(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{members[0].Addr}}, slog.New(slog.DiscardHandler)))
	m.Await("a", "1")
	put("2")
	m.Await("a", "2") // by the watch, which now stands
	members[1].Kill()
	members[2].Kill()
	if err := m.AwaitLost(conformance.Any); !strings.Contains(err.Error(), "no leader") {
		t.Errorf("lost for %v", err)
	}
	members[1].Start()
	m.Await("a", "2")
}

// The watch moves to a member that lives.
func TestMemberDies(t *testing.T) {
	t.Parallel()
	members := testkit.StartEtcdCluster(t, 3, testkit.EtcdOptions{})
	var endpoints []string
	for _, e := range members {
		endpoints = append(endpoints, e.Addr)
	}
	client := bareClient(t, clientv3.Config{Endpoints: endpoints})
	m := follow(t, etcd.New(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: endpoints}, slog.New(slog.DiscardHandler)))
	m.Await()
	for i, e := range members {
		value := strconv.Itoa(i)
		e.Kill()
		late, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		for _, err := client.Put(late, root+"a", value); err != nil; _, err = client.Put(late, root+"a", value) {
			if late.Err() != nil {
				t.Fatalf("two members of three take no value: %v", err)
			}
		}
		cancel()
		m.Await("a", value)
		e.Start()
	}
}

// A member that lost its disk was started as a cluster of its own, and is still among the endpoints. It is not used
// as long as one of the known cluster answers.
func TestMemberOfAnotherCluster(t *testing.T) {
	t.Parallel()
	for name, users := range map[string]bool{"open": false, "with users": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other := start(t), start(t)
			s.put(root+"a", "1")
			cfg := etcd.Config{Endpoints: []string{s.line.Addr, other.line.Addr}, DialTimeout: testkit.Patience, OperationTimeout: testkit.Patience}
			if users {
				allowAgent(t, s.client)
				cfg.Username, cfg.Password = "agent", "secret"
			}
			other.line.Set(testkit.Reset)
			c := etcd.New(cfg, slog.New(slog.DiscardHandler))
			known := conformance.ListingOf(t, c, root)
			other.line.Set(testkit.Pass)
			ctx := s.ctx()
			for listed := 0; listed < 10; {
				if ctx.Err() != nil {
					t.Fatalf("only %d listings", listed)
				}
				for b, err := range c.Watch(ctx, root) {
					if ctx.Err() != nil || err == nil && b.Identity != known.Identity {
						t.Fatalf("after %d listings of %s: %+v, %v", listed, known.Identity, b, err)
					}
					if b.Synced {
						listed++
						break
					}
				}
			}
			s.line.Retarget(other.etcd.Addr)
			if l := conformance.ListingOf(t, c, root); l.Identity == known.Identity || l.Keys != 0 {
				t.Errorf("after all endpoints were replaced: %+v", l)
			}
		})
	}
}

// The member that began a cluster of its own answers, while the others are started again: they have not gone for good.
func TestSilentClusterIsNotGivenUp(t *testing.T) {
	t.Parallel()
	s, other := start(t), start(t)
	s.put(root+"a", "1")
	other.line.Set(testkit.Reset)
	c := etcd.New(etcd.Config{Endpoints: []string{s.line.Addr, other.line.Addr}, DialTimeout: testkit.Patience, OperationTimeout: testkit.Patience},
		slog.New(slog.DiscardHandler))
	known := conformance.ListingOf(t, c, root)
	s.line.Set(testkit.Reset)
	other.line.Set(testkit.Pass)
	ctx := s.ctx()
	for refused := 0; refused < 3; {
		if ctx.Err() != nil {
			t.Fatalf("the other cluster was refused %d times", refused)
		}
		for b, err := range c.Watch(ctx, root) {
			if err == nil {
				t.Fatalf("while %s is silent, another cluster is listed: %+v", known.Identity, b)
			}
			if errors.Is(err, etcd.ErrOtherCluster) {
				refused++
			}
		}
	}
	s.line.Set(testkit.Pass)
	other.line.Set(testkit.Reset)
	if l := conformance.ListingOf(t, c, root); l.Identity != known.Identity || l.Keys != 1 {
		t.Errorf("after the known cluster has answered again: %+v, want %s", l, known.Identity)
	}
}

// A learner refuses watches, so one that is sent to it after a listing is repeated at another endpoint.
func TestLearnerAmongTheEndpoints(t *testing.T) {
	t.Parallel()
	s := start(t, "--strict-reconfig-check=false") // which lets no member join in the first seconds
	s.put(root+"a", "1")
	learner, peer := testkit.EtcdLearner(t, s.etcd)
	if _, err := s.client.MemberAddAsLearner(s.ctx(), []string{peer}); err != nil {
		t.Fatal(err)
	}
	learner.Start()
	c := etcd.New(etcd.Config{Endpoints: []string{s.etcd.Addr, learner.Addr}, OperationTimeout: testkit.Patience}, slog.New(slog.DiscardHandler))
	ctx := s.ctx()
	for watches := 0; watches < 10; {
		if ctx.Err() != nil {
			t.Fatalf("only %d watches", watches)
		}
		for b, err := range c.Watch(ctx, root) {
			// A listing is refused if only the learner is connected yet.
			if err != nil && (ctx.Err() != nil || !strings.Contains(err.Error(), "listing "+root)) {
				t.Fatalf("after %d watches: %v", watches, err)
			}
			if b.Synced {
				watches++
				break
			}
		}
	}
}

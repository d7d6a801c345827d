package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// A server that hangs keeps its connections open; so does a line that swallows
// everything. gRPC's pings find out.
func TestSilenceIsNoticed(t *testing.T) {
	t.Parallel()
	silences := map[string]struct{ begin, end func(*server) }{
		"server stopped": {func(s *server) { s.etcd.Pause() }, func(s *server) { s.etcd.Continue() }},
		"black hole":     {func(s *server) { s.line.Set(testkit.BlackHole) }, func(s *server) { s.line.Set(testkit.Pass) }},
	}
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.put(root+"a", "1")
			m := follow(t, s.connector())
			m.Await("a", "1")
			s.put(root+"a", "2")
			m.Await("a", "2") // now it is the watch that is silenced, not its beginning
			begun := time.Now()
			silence.begin(s)
			reason := m.AwaitLost(conformance.Any) // TCP alone would take longer than it waits
			t.Logf("noticed after %v: %v", time.Since(begun).Round(time.Millisecond), reason)
			silence.end(s)
			s.put(root+"a", "3")
			m.Await("a", "3")
		})
	}
}

// asking returns a connector that soon asks whether its watch is alive, and the load balancer before its server.
func (s *server) asking(timeout time.Duration) (*testkit.GRPCProxy, *etcd.Connector) {
	s.t.Helper()
	line := testkit.StartGRPCProxy(s.t, s.etcd.Addr)
	c := etcd.New(etcd.Config{Endpoints: []string{line.Addr}, OperationTimeout: timeout}, slog.New(slog.DiscardHandler))
	c.AskAfter(50 * time.Millisecond)
	return line, c
}

func isSilent(err error) bool { return errors.Is(err, etcd.ErrSilent) }

// A load balancer holds the watch and has lost it on its other side. It answers gRPC's pings
// itself, and all other calls work.
func TestOneSilentWatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	line, c := s.asking(2 * time.Second)
	s.put(root+"a", "1")
	m := follow(t, c)
	m.Await("a", "1")
	s.put(root+"a", "2")
	m.Await("a", "2")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := s.ctx(); line.Silence(watchMethod) == 0; <-tick.C { // a busy machine may just begin another watch
		if late.Err() != nil {
			t.Fatal("no watch could be silenced")
		}
	}
	s.put(root+"a", "3")
	m.AwaitLost(isSilent)
	m.Await("a", "3")
}

// Clients behind etcd's own gRPC proxy that follow the same keys share a watch, which answers no questions. Each of
// them lists once.
func TestBehindAnEtcdProxy(t *testing.T) {
	t.Parallel()
	s := start(t)
	proxy := testkit.StartEtcdProxy(t, []*testkit.Etcd{s.etcd})
	s.put(root+"a", "1")
	ctx, cancel := context.WithTimeout(s.ctx(), testkit.Patience)
	defer cancel()
	ended := make(chan error)
	const clients = 3
	for range clients {
		// No server hangs here. The time until the agent is sure is three times this long.
		c := etcd.New(etcd.Config{Endpoints: []string{proxy.Addr}, OperationTimeout: 10 * time.Second}, slog.New(slog.DiscardHandler))
		c.AskAfter(50 * time.Millisecond)
		listed := make(chan bool)
		go func() {
			ended <- func() error {
				for b, err := range c.Watch(ctx, root) {
					if b.Synced {
						close(listed)
					}
					if err != nil || !b.Synced && len(b.Events) > 0 && c.Lacking() {
						return err
					}
				}
				return ctx.Err()
			}()
		}()
		<-listed
	}
	change := time.NewTicker(100 * time.Millisecond)
	defer change.Stop()
	for left := clients; left > 0; {
		select {
		case err := <-ended:
			if left--; err != nil {
				t.Error(err)
			}
		case <-change.C:
			s.put(root+"a", time.Now().String())
		}
	}
}

// etcd's gRPC proxy follows on with a watch of its own when the store was restored or emptied, and hides that, also when
// the store has passed its former revision by then.
func TestOtherStoreBehindAnEtcdProxy(t *testing.T) {
	t.Parallel()
	for name, past := range map[string]bool{"behind the known revision": false, "past the known revision": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			proxy := testkit.StartEtcdProxy(t, []*testkit.Etcd{s.etcd})
			c := etcd.New(etcd.Config{Endpoints: []string{proxy.Addr}, OperationTimeout: 2 * time.Second}, slog.New(slog.DiscardHandler))
			c.AskAfter(50 * time.Millisecond)
			ctx, cancel := context.WithCancel(s.ctx())
			defer cancel()
			var asked sync.WaitGroup
			asked.Go(func() {
				for _, err := range c.Watch(ctx, root) {
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
			tick := time.NewTicker(500 * time.Millisecond)
			defer tick.Stop()
			for late := s.ctx(); !c.Lacking(); <-tick.C {
				if late.Err() != nil {
					t.Fatal("it is still not known that the proxy answers no questions")
				}
				s.put(root+"first", "1") // a watch is asked once the store has changed, and it is silent
			}
			cancel()
			asked.Wait()
			// It is not asked while the store is away and is written to.
			c.AskAfter(4 * time.Second)
			m := follow(t, c)
			m.Await("first", "1")
			for i := range 10 {
				s.put(root+"a", fmt.Sprint(i))
			}
			m.Await("first", "1", "a", "9")
			known, err := s.client.Get(s.ctx(), root+"a")
			if err != nil {
				t.Fatal(err)
			}
			s.etcd.Kill()
			s.etcd.Wipe()
			s.etcd.Start()
			for {
				done, err := s.client.Put(s.ctx(), root+"b", "1")
				if err != nil {
					t.Fatal(err)
				}
				if !past || done.Header.Revision > known.Header.Revision {
					break
				}
			}
			m.Await("b", "1")
		})
	}
}

// etcd answers no questions about the progress of a watch until something changes. That does not end the watch.
func TestQuietStore(t *testing.T) {
	t.Parallel()
	s := start(t)
	line, c := s.asking(testkit.Patience)
	s.put(root+"a", "1")
	ctx, cancel := context.WithCancel(s.ctx())
	var changing sync.WaitGroup
	defer changing.Wait()
	defer cancel()
	synced := false
	for b, err := range c.Watch(ctx, root) {
		if err != nil {
			t.Fatal(err)
		}
		if synced && len(b.Events) > 0 {
			return
		}
		if b.Synced {
			synced = true
			begun := line.Begun(rangeMethod)
			changing.Go(func() {
				for line.Begun(rangeMethod) < begun+10 && ctx.Err() == nil {
					<-time.After(10 * time.Millisecond)
				}
				if _, err := s.client.Put(ctx, root+"a", "2"); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
	}
	t.Error("the watch ended before the change")
}

const rangeMethod = "/etcdserverpb.KV/Range"

const watchMethod = "/etcdserverpb.Watch/Watch"

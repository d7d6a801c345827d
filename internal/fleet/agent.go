// Package fleet runs many agents, to test and to measure what a cluster of etcd, Consul or
// Redis carries. It is test code.
//
//	a := fleet.Start(t, fleet.Options{Label: "edge-1", Store: "etcd", Conf: "endpoints: [127.0.0.1:2379]"})
//	... put fleet.Key("edge-1", "a"), fleet.Value("a", "1") ...
//	a.Await(ctx, map[string]string{"a": "1"})
//
// Each agent is the whole agent with the real connector of its store. It only lacks Linux,
// VPP, HTTP and gRPC: its southbound is a map, in which an item is a name and a text.
//
// An agent has up to 25 descriptors: 4 locks and sockets, 6 files of its state, and its connections.
// So the agents of a large fleet are divided among several processes: StartProcess.
//
// The figures of docs/scale.md come from TestScale: `make fleet` runs it in full size.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// Texts with a meaning. All others are configured.
const (
	Waits = "waits" // PENDING, until the item Awaited exists
	Fails = "fails" // FAILED, without a retry
)

// Awaited is the name of the item that those with the text Waits need.
const Awaited = "awaited"

// Root returns the prefix of the keys of an agent.
func Root(label string) string { return "/vnf-agent/" + label + "/" }

// Key returns the whole key of an item.
func Key(label, name string) string {
	return Root(label) + models.For[*interfaces.Interface]().Prefix() + name
}

// Value returns what the store holds for an item.
func Value(name, text string) []byte {
	return fmt.Appendf(nil, `{"name":%q,"type":"DUMMY","host_if_name":%q}`, name, text)
}

// Options configure an agent. Label and Store are required.
type Options struct {
	Label string
	Store string // etcd, redis or consul
	Conf  string // the content of the configuration file of the store
	// Orchestrator is the content of orchestrator.conf. Defaults to an agent without state
	// that publishes nothing.
	Orchestrator string
	// Items is what the network has at the start: Has of the agent before, if this one has the
	// same state-dir. The agent cannot read items back, so it relies on what it remembers.
	Items map[string]string
}

// An Agent is a running agent.
type Agent struct {
	Label string

	end    context.CancelFunc
	ended  chan struct{}
	err    error // why it has ended by itself; set before ended is closed
	merged *agent.Layers

	mu    sync.Mutex // guards the fields below
	items map[string]string
	verbs int
	turn  chan struct{} // closed and replaced at each change of items
	log   *testkit.Tail // the last lines of its log
}

// Start starts an agent. Stop or the end of the test ends it.
func Start(t testing.TB, o Options) *Agent {
	t.Helper()
	a, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Stop()
		if a.err != nil {
			t.Error(a.err)
		}
	})
	return a
}

// start starts an agent, and returns when it has all its parts.
func start(o Options) (*Agent, error) {
	dir, err := os.MkdirTemp("", "fleet") // the folder of a test may be too long for a socket
	if err != nil {
		return nil, err
	}
	if o.Items == nil {
		o.Items = map[string]string{}
	}
	if o.Orchestrator == "" {
		o.Orchestrator = "state-dir: ''\n"
	}
	for name, text := range map[string]string{o.Store + ".conf": o.Conf, "orchestrator.conf": o.Orchestrator, "kvscheduler.conf": "print-txn-limit: 0\nhistory-count: 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	a := &Agent{Label: o.Label, ended: make(chan struct{}), items: maps.Clone(o.Items), turn: make(chan struct{}), log: testkit.NewTail(40)}
	ctx, cancel := context.WithCancel(context.Background())
	a.end = cancel
	ready := make(chan struct{})
	go func() {
		defer close(a.ended)
		defer os.RemoveAll(dir)
		err := agent.Run(ctx, agent.Options{
			Without: []agent.Part{agent.Linux, agent.VPP, agent.HTTP, agent.GRPC}, Descriptors: []agent.Addition{a.southbound},
			Northbounds: []agent.Addition{func(p agent.Parts) ([]agent.Task, error) {
				a.merged = p.Orchestrator
				close(ready)
				return nil, nil
			}},
			Args: []string{"-config-dir=" + dir, "-socket=" + filepath.Join(dir, "s"), "-microservice-label=" + o.Label}, Stdout: a.log, Stderr: a.log,
		})
		if err != nil {
			a.err = fmt.Errorf("agent %s: %w\n%s", o.Label, err, a.log)
		}
	}()
	select {
	case <-ready:
		return a, nil
	case <-a.ended:
		cancel()
		return nil, fmt.Errorf("agent %s ended as it started: %w", o.Label, a.err)
	}
}

// Stop ends the agent in an orderly way. It may have ended already.
func (a *Agent) Stop() { a.end(); <-a.ended }

// southbound registers the descriptor of the one model.
func (a *Agent) southbound(p agent.Parts) ([]agent.Task, error) {
	type none = struct{}
	type item = *interfaces.Interface
	_, err := scheduler.Register(p.Scheduler, scheduler.Descriptor[item, none]{
		Name:  "item",
		Model: models.For[item](),
		Dependencies: func(_ string, v item) []scheduler.Dependency {
			if v.GetHostIfName() != Waits {
				return nil
			}
			return []scheduler.Dependency{{Label: "awaited-exists", Key: models.For[item]().Prefix() + Awaited}}
		},
		Create: func(_ context.Context, _ string, v item) (none, error) { return none{}, a.set(v) },
		Update: func(_ context.Context, _ string, _, v item, _ none) (none, error) { return none{}, a.set(v) },
		Delete: func(_ context.Context, _ string, v item, _ none) error {
			a.change(func() { delete(a.items, v.GetName()) })
			return nil
		},
	})
	return nil, err
}

// errNoRoom is the error of an item with the text Fails.
var errNoRoom = errors.New("no room")

// set creates or changes an item.
func (a *Agent) set(v *interfaces.Interface) error {
	if v.GetHostIfName() == Fails {
		return scheduler.Terminal(errNoRoom)
	}
	a.change(func() { a.items[v.GetName()] = v.GetHostIfName() })
	return nil
}

// change executes one verb, and wakes those who wait.
func (a *Agent) change(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
	a.verbs++
	close(a.turn)
	a.turn = make(chan struct{})
}

// Has returns a copy of the items.
func (a *Agent) Has() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.items)
}

// Verbs returns the number of operations since the start.
func (a *Agent) Verbs() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.verbs
}

// Health returns the state of the agent's store: the number of listings, for example.
func (a *Agent) Health() kvdbsync.Health { return a.store().Health }

// store returns the state of the agent's store.
func (a *Agent) store() orchestrator.Health {
	for _, h := range a.merged.Health() {
		if !strings.HasPrefix(h.Source, "initfile") {
			return h
		}
	}
	return orchestrator.Health{}
}

// AwaitListed waits until a listing of the store is in effect. An agent that remembers its items
// has them before.
func (a *Agent) AwaitListed(ctx context.Context) error {
	for a.store().Confirmed.IsZero() {
		if !backoff.Sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("agent %s has not read its store: %w\n%s", a.Label, ctx.Err(), a.log)
		}
	}
	return nil
}

// Await waits until the agent has exactly these items.
func (a *Agent) Await(ctx context.Context, want map[string]string) error {
	return a.await(ctx, func() bool { return maps.Equal(a.items, want) })
}

// AwaitItem waits until an item has a text.
func (a *Agent) AwaitItem(ctx context.Context, name, text string) error {
	return a.await(ctx, func() bool { return a.items[name] == text })
}

// await waits for a condition on the items. It reads them under the lock.
func (a *Agent) await(ctx context.Context, is func() bool) error {
	for {
		a.mu.Lock()
		done, turn := is(), a.turn
		a.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-turn:
		case <-a.ended:
			return fmt.Errorf("agent %s has ended: %w", a.Label, a.err)
		case <-ctx.Done():
			return fmt.Errorf("agent %s has %v, not what is declared: %w\n%s", a.Label, a.Has(), ctx.Err(), a.log)
		}
	}
}

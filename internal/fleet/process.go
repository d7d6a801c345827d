package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// A Process is another process of the test program, with some agents of a fleet. Calls to it are
// those of net/rpc, on its standard input and output.
type Process struct {
	client *rpc.Client
	stop   func() error
}

// processVariable tells a program that it is a Process.
const processVariable = "KEYPLANE_FLEET_PROCESS"

// StartProcess starts a process without agents. Stop or the end of the test ends it. TestMain of
// the program calls ServeProcess first. Servers have precedence over the process: a member of etcd
// that waits for a processor for a second loses its leader, and all agents lose their watches.
func StartProcess(t testing.TB) *Process {
	t.Helper()
	client, stop := testkit.StartAgain(t, processVariable, "1", "nice")
	return &Process{client, stop}
}

// ServeProcess runs the agents of a Process, and exits when its parent stops it. In any other
// process it does nothing.
func ServeProcess() {
	if os.Getenv(processVariable) == "" {
		return
	}
	all := &agents{of: map[string]*Agent{}}
	err := testkit.ServeCalls("Agents", all)
	if err == nil {
		err = all.stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Stop ends all agents in an orderly way, and then the process. The error says that one had ended
// by itself.
func (p *Process) Stop() error {
	if err := p.stop(); err != nil {
		return fmt.Errorf("process of agents: %w", err)
	}
	return nil
}

// Start starts an agent.
func (p *Process) Start(o Options) error { return p.client.Call("Agents.Start", o, &struct{}{}) }

// Await waits until an agent has read its store, and has exactly these items. The context has a
// deadline.
func (p *Process) Await(ctx context.Context, label string, want map[string]string) error {
	until, _ := ctx.Deadline()
	return p.client.Call("Agents.Await", AwaitArgs{Label: label, Until: until, Items: want}, &struct{}{})
}

// AwaitItem waits until an item of an agent has a text. The context has a deadline.
func (p *Process) AwaitItem(ctx context.Context, label, name, text string) error {
	until, _ := ctx.Deadline()
	return p.client.Call("Agents.AwaitItem", AwaitItemArgs{Label: label, Until: until, Name: name, Text: text}, &struct{}{})
}

// Listings returns how often each agent has listed its store.
func (p *Process) Listings() (of map[string]uint64, err error) {
	err = p.client.Call("Agents.Listings", struct{}{}, &of)
	return of, err
}

// agents are the agents of this process. Its exported methods are those that net/rpc calls, each
// on a goroutine of its own.
type agents struct {
	mu sync.Mutex // guards of
	of map[string]*Agent
}

// AwaitArgs are the arguments of Await.
type AwaitArgs struct {
	Label string
	Until time.Time
	Items map[string]string
}

// AwaitItemArgs are the arguments of AwaitItem.
type AwaitItemArgs struct {
	Label      string
	Until      time.Time
	Name, Text string
}

// Start starts an agent.
func (all *agents) Start(o Options, _ *struct{}) error {
	a, err := start(o)
	if err != nil {
		return err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.of[o.Label] = a
	return nil
}

// agent returns a started agent.
func (all *agents) agent(label string) *Agent {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.of[label]
}

// Await waits until an agent has read its store, and has exactly these items.
func (all *agents) Await(q AwaitArgs, _ *struct{}) error {
	ctx, cancel := context.WithDeadline(context.Background(), q.Until)
	defer cancel()
	a := all.agent(q.Label)
	if err := a.AwaitListed(ctx); err != nil {
		return err
	}
	return a.Await(ctx, q.Items)
}

// AwaitItem waits until an item of an agent has a text.
func (all *agents) AwaitItem(q AwaitItemArgs, _ *struct{}) error {
	ctx, cancel := context.WithDeadline(context.Background(), q.Until)
	defer cancel()
	return all.agent(q.Label).AwaitItem(ctx, q.Name, q.Text)
}

// Listings tells how often each agent has listed its store.
func (all *agents) Listings(_ struct{}, of *map[string]uint64) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	*of = map[string]uint64{}
	for label, a := range all.of {
		(*of)[label] = a.Health().Listings
	}
	return nil
}

// stop ends all agents, and returns why some had ended by themselves.
func (all *agents) stop() error {
	var waiting sync.WaitGroup
	for _, a := range all.of {
		waiting.Go(a.Stop)
	}
	waiting.Wait()
	var errs []error
	for _, a := range all.of {
		errs = append(errs, a.err)
	}
	return errors.Join(errs...)
}

package client_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// newAgent starts a part of an agent, whose interfaces always succeed, and returns its client.
func newAgent() (c client.Client, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	sched := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	_, err := scheduler.Register(sched, scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(context.Context, string, *interfaces.Interface) (struct{}, error) { return struct{}{}, nil },
		Delete: func(context.Context, string, *interfaces.Interface, struct{}) error { return nil },
	})
	if err != nil {
		fmt.Println(err)
	}
	orch := orchestrator.New(sched, orchestrator.Options{Log: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 2)
	go func() { ended <- sched.Run(ctx) }()
	go func() { ended <- orch.Run(ctx) }()
	return client.NewLocal(sched, orch, client.Options{}), func() {
		cancel()
		<-ended
		<-ended
	}
}

// A program in the agent's process declares an interface, waits until it is applied, and
// reads it. Over gRPC only the first line differs; see ExampleNewRemote.
func ExampleNewLocal() {
	ctx := context.Background()
	c, stop := newAgent() // client.NewLocal(...)
	defer stop()
	loop := &interfaces.Interface{Name: "loop", Type: interfaces.Interface_LOOPBACK, Mtu: 1400}
	if err := c.Put(ctx, loop); err != nil {
		fmt.Println(err)
	}
	if err := c.Wait(ctx, loop); err != nil {
		fmt.Println(err)
	}
	all, err := client.All[*interfaces.Interface](ctx, c)
	if err != nil {
		fmt.Println(err)
	}
	for _, v := range all {
		fmt.Println(v.GetName(), v.GetMtu())
	}
	// Output: loop 1400
}

// One transaction replaces an interface by another one. Other values of the client stay.
func ExampleClient_commit() {
	ctx := context.Background()
	c, stop := newAgent()
	defer stop()
	before, after := &interfaces.Interface{Name: "before"}, &interfaces.Interface{Name: "after"}
	if err := c.Put(ctx, before, &interfaces.Interface{Name: "other"}); err != nil {
		fmt.Println(err)
	}
	if err := c.Commit(ctx, client.Delete(before), client.Put(after)); err != nil {
		fmt.Println(err)
	}
	all, err := client.All[*interfaces.Interface](ctx, c)
	if err != nil {
		fmt.Println(err)
	}
	for _, v := range all {
		fmt.Println(v.GetName())
	}
	// Output:
	// after
	// other
}

// Over gRPC, a connection makes the client: to the agent's own socket, or to the loopback.
func ExampleNewRemote() {
	conn, err := client.Dial(context.Background(), client.Agent{Label: "vpp1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	c := client.NewRemote(conn, client.Options{Source: "my-program", Revert: true})
	_ = c // c.Put(ctx, ...)
	// Output:
}

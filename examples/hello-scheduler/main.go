// Hello-scheduler is the smallest use of the scheduler: interfaces, routes over them, and
// three ways to declare them. In each of them the interface is created first.
//
//	go run ./examples/hello-scheduler
//
// There is no store and no network. descriptors.go defines interfaces and routes. paper.go
// is a system that only prints its operations.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

func main() {
	if err := hello(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hello-scheduler:", err)
		os.Exit(1)
	}
}

// A scenario is a list of transactions.
type scenario struct {
	title string
	txns  [][]proto.Message
}

// scenarios returns three ways to declare the same values. All of them end in the same
// state, and in each the interface is created before its route.
func scenarios() []scenario {
	eth1 := &interfaces.Interface{Name: "eth1", Type: interfaces.Interface_DUMMY, Enabled: true}
	route := &l3.Route{DstNetwork: "10.2.0.0/24", OutgoingInterface: "eth1"}
	return []scenario{
		{"1. both in one transaction", [][]proto.Message{{eth1, route}}},
		{"2. both in one transaction, in reverse order", [][]proto.Message{{route, eth1}}},
		{"3. the route first, in a transaction of its own, then the interface", [][]proto.Message{{route}, {eth1}}},
	}
}

// hello runs each scenario with a scheduler of its own, so that no value of one is left
// for the next.
func hello(ctx context.Context, out io.Writer) error {
	for i, t := range scenarios() {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, t.title)
		if err := t.tell(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// tell starts a scheduler, commits the transactions, and prints the resulting values.
func (t scenario) tell(ctx context.Context, out io.Writer) error {
	s := scheduler.New(scheduler.Options{})
	if err := register(s, &paper{out: out}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	err := t.commit(ctx, out, s)
	stop()
	if err != nil {
		return err
	}
	return <-ended
}

// commit applies the transactions of the scenario one after the other. After each it
// prints the state of all values: a route without its interface is PENDING, which is no
// error.
func (t scenario) commit(ctx context.Context, out io.Writer, s *scheduler.Scheduler) error {
	for _, messages := range t.txns {
		fmt.Fprintln(out, "   commit")
		changes, err := declare(s, messages)
		if err != nil {
			return err
		}
		if _, err := s.Commit(ctx, scheduler.Txn{Changes: changes}); err != nil {
			return err
		}
		for _, st := range s.Statuses("config/") {
			fmt.Fprintf(out, "     %s: %s%s\n", st.Key, st.State, waits(st))
		}
	}
	return nil
}

// waits returns the unmet dependencies of a pending value.
func waits(st *scheduler.Status) string {
	if len(st.Details) == 0 {
		return ""
	}
	return " until " + strings.Join(st.Details, ", ")
}

// declare prepares messages, each under the key of its content.
func declare(s *scheduler.Scheduler, messages []proto.Message) (out []scheduler.Change, err error) {
	for _, m := range messages {
		model, ok := models.BuiltIn().ForMessage(m)
		if !ok {
			return nil, models.ErrNoModel
		}
		key, err := model.Key(m)
		if err != nil {
			return nil, err
		}
		v, err := s.Value(key, m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, v.Change())
	}
	return out, nil
}

package siege

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/rpc"
	"os"
	"sync"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// rules say where a referee declares good values, and which. They pass to its process as JSON.
type rules struct {
	Endpoint string // of an etcd; empty: a file
	Root     string // of the agent's keys in etcd
	File     string
	Prefix   string // of the names of its interfaces
	Net      int    // second number of its addresses
	Keeps    bool   // it removes nothing: while some source was never read, removals wait for that
}

// refereeEnv has the rules of a process that is a referee.
const refereeEnv = "SIEGE_REFEREE"

// A referee is a [changer] in a process of its own: attackers, who keep that of the test busy, do not delay what it measures.
type referee struct{ client *rpc.Client }

// startReferee starts this program again, as a referee in the network of the test. The test ends it.
func startReferee(t testing.TB, r rules) *referee {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	client, _ := testkit.StartAgain(t, refereeEnv, string(text))
	return &referee{client}
}

// call has the referee do something; it goes on with it after ctx has ended.
func (r *referee) call(ctx context.Context, method string, reply any) error {
	select {
	case call := <-r.client.Go("Referee."+method, struct{}{}, reply, make(chan *rpc.Call, 1)).Done:
		return call.Error
	case <-ctx.Done():
		return fmt.Errorf("%s of the referee: %w", method, ctx.Err())
	}
}

// declareAll declares all good values, and returns when the kernel has them.
func (r *referee) declareAll(ctx context.Context) error {
	if err := r.call(ctx, "Declare", &struct{}{}); err != nil {
		return err
	}
	if err := r.awaitQuiet(ctx); err != nil {
		return err
	}
	return r.call(ctx, "Settled", &struct{}{})
}

// run changes good values until ctx ends.
func (r *referee) run(ctx context.Context) error {
	if err := r.call(ctx, "Begin", &struct{}{}); err != nil {
		return err
	}
	<-ctx.Done()
	return r.call(context.WithoutCancel(ctx), "End", &struct{}{})
}

// awaitQuiet returns when no change is under way and the kernel has all good values and no
// others of the referee's names. The error of an ended ctx tells what differs.
func (r *referee) awaitQuiet(ctx context.Context) error {
	return poll(ctx, func() error {
		var late UnsettledError
		if err := r.call(context.WithoutCancel(ctx), "Unsettled", &late); err != nil || late.Text == "" {
			return err
		}
		return &late
	})
}

// Seen is what a referee has seen.
type Seen struct {
	Took    times    // of the changes since the last call
	Slowest []slow   // of these
	Removed []string // standing values that ever vanished from the kernel
}

// seen returns it.
func (r *referee) seen(ctx context.Context) (out Seen, err error) {
	err = r.call(ctx, "Verdict", &out)
	return out, err
}

// A service answers the calls of a [referee], each in a goroutine of its own.
type service struct {
	*changer
	stop func()     // ends the changes that go on
	done chan error // of them
}

// referees is the main function of a process that is a referee. It returns its exit code.
func referees(text string) int {
	if err := refereeOf(text); err != nil {
		fmt.Fprintln(os.Stderr, "the referee:", err)
		return 1
	}
	return 0
}

// refereeOf answers calls until the input ends.
func refereeOf(text string) error {
	var r rules
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	source, err := r.source()
	if err != nil {
		return err
	}
	s := &service{changer: newChanger(source, r)}
	ctx, cancel := context.WithCancel(context.Background())
	var watched sync.WaitGroup
	watched.Go(func() { err = watchAddresses(ctx, s.seen, s.look) })
	served := testkit.ServeCalls("Referee", s)
	cancel()
	watched.Wait()
	return cmp.Or(served, err)
}

// Declare declares all good values.
func (s *service) Declare(struct{}, *struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	return s.declareAll(ctx)
}

// Settled says that the kernel has all good values.
func (s *service) Settled(struct{}, *struct{}) error { s.begin(); return nil }

// Begin has changes go on until End.
func (s *service) Begin(struct{}, *struct{}) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.done = cancel, make(chan error, 1)
	go func() { s.done <- s.run(ctx) }()
	return nil
}

// End ends the changes.
func (s *service) End(struct{}, *struct{}) error { s.stop(); return <-s.done }

// Unsettled says how the kernel differs from the good values.
func (s *service) Unsettled(_ struct{}, reply *UnsettledError) (err error) {
	*reply, err = s.unsettled()
	return err
}

// Verdict says what was seen.
func (s *service) Verdict(_ struct{}, reply *Seen) error {
	reply.Took, reply.Slowest = s.times()
	s.mu.Lock()
	defer s.mu.Unlock()
	reply.Removed = s.removed
	return nil
}

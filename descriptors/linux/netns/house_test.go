package netns_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

// A house is a scheduler whose values are interfaces that only enter their namespace.
type house struct {
	t     *testing.T
	set   *netns.Set
	sched *scheduler.Scheduler
	end   func() // stops all
	// inside is called by Create in the namespace; nil: nothing is done there.
	inside func(key string) error

	// stall is closed to let Watch go on: it stops at the name "stall".
	stall chan struct{}

	mu   sync.Mutex // guards lost
	lost []string   // names that Watch has reported as lost
}

// startHouse runs a scheduler, Watch and Tidy until the test ends.
func startHouse(t *testing.T, o netns.Options) *house {
	t.Helper()
	if !exists("house") { // so the folder of names stays a plain one, which other tests remove
		testkit.Netns(t, "house")
	}
	o.Log = slog.New(slog.NewTextHandler(testkit.Log(t), nil))
	h := &house{t: t, stall: make(chan struct{}), set: netns.New(o), sched: scheduler.New(scheduler.Options{Log: o.Log})}
	for _, name := range []string{"linux", "other"} {
		connection, err := h.sched.Connection(name)
		if err != nil {
			t.Fatal(err)
		}
		connection.Ready()
	}
	_, err := scheduler.Register(h.sched.OnConnection("linux"), scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name: "interface", Model: models.For[*interfaces.Interface](), Create: h.create,
		Delete: func(context.Context, string, *interfaces.Interface, struct{}) error { return nil },
		Dependencies: func(_ string, v *interfaces.Interface) []scheduler.Dependency {
			return h.set.Dependencies(v.GetNamespace())
		},
	})
	_, err2 := scheduler.Register(h.sched.OnConnection("other"), scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: "other", Prefix: "other/",
		Create: func(_ context.Context, key string, _ *emptypb.Empty) (struct{}, error) {
			return struct{}{}, h.inside(key)
		},
		Delete: func(context.Context, string, *emptypb.Empty, struct{}) error { return nil },
	})
	if err := errors.Join(err, err2, h.set.Register(h.sched, "linux")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() { _ = h.sched.Run(ctx) })
	g.Go(func() { h.set.Watch(ctx, h.changed) })
	g.Go(func() { h.set.Tidy(ctx) })
	h.end = func() { cancel(); g.Wait() }
	t.Cleanup(h.end)
	return h
}

func (h *house) create(_ context.Context, key string, v *interfaces.Interface) (struct{}, error) {
	space, err := h.set.Enter(v.GetNamespace())
	if err != nil {
		return struct{}{}, err
	}
	defer space.Close()
	if h.inside != nil {
		err = h.inside(key)
	}
	return struct{}{}, err
}

// changed is what the plugin does with changes of names.
func (h *house) changed(c netns.Change) {
	if slices.Contains(c.Appeared, "stall") {
		<-h.stall
	}
	h.mu.Lock()
	h.lost = append(h.lost, c.Lost...)
	h.mu.Unlock()
	for _, name := range c.Lost {
		h.sched.Observe(scheduler.Observed{Key: keys.Namespace(name)})
	}
	for _, name := range slices.Concat(c.Appeared, c.Offered) {
		h.sched.Observe(scheduler.Observed{Key: keys.Namespace(name), Value: &emptypb.Empty{}})
	}
}

// hasLost reports whether a name was ever lost.
func (h *house) hasLost(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.lost, name)
}

func keyOf(name string) string { return models.For[*interfaces.Interface]().KeyOf(name) }

// in is an interface in a namespace.
func (h *house) in(name string, ns *namespace.NetNamespace) scheduler.Change {
	return scheduler.Want(keyOf(name), &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY, Namespace: ns})
}

// want wants an interface in a namespace.
func (h *house) want(name, space string) { h.commit(h.in(name, nsid(space))) }

func (h *house) unwant(name string) { h.commit(scheduler.Unwant(keyOf(name))) }

// commit commits a transaction; the statuses of values that fail say so.
func (h *house) commit(changes ...scheduler.Change) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), testkit.Patience)
	defer cancel()
	_, err := h.sched.Commit(ctx, scheduler.Txn{Changes: changes})
	if _, failed := errors.AsType[*scheduler.TxnError](err); err != nil && !failed {
		h.t.Fatal(err)
	}
}

// start begins a transaction, and does not wait for its end.
func (h *house) start(changes ...scheduler.Change) {
	h.t.Helper()
	if err := h.sched.Start(h.t.Context(), scheduler.Txn{Changes: changes}, func(*scheduler.Record, error) {}); err != nil {
		h.t.Fatal(err)
	}
}

// state returns the state of a key.
func (h *house) state(key string) scheduler.State {
	st, known := h.sched.Status(key)
	if !known {
		return scheduler.Nonexistent
	}
	return st.State
}

// awaitState waits until a key has a state.
func (h *house) awaitState(key string, want scheduler.State) {
	h.t.Helper()
	h.await(fmt.Sprintf("%s is %v", key, want), func() bool { return h.state(key) == want })
}

// await waits for a condition.
func (h *house) await(what string, holds func() bool) {
	h.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(testkit.Patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			h.t.Fatalf("it never happened that %s", what)
		}
	}
}

// whileMaking is this host, on which making a namespace stops once its file is there.
type whileMaking struct {
	kernel.This
	begun chan string   // gets the path
	goOn  chan struct{} // closed when it may be bound
}

func (w whileMaking) Make(path string) (kernel.ID, error) {
	if err := os.WriteFile(path, nil, 0); err != nil {
		return kernel.ID{}, err
	}
	w.begun <- path
	<-w.goOn
	if err := os.Remove(path); err != nil {
		return kernel.ID{}, err
	}
	return w.This.Make(path)
}

// A kernel that is slow to make a namespace delays nobody else, and the name is not lost meanwhile.
func TestSlowMaking(t *testing.T) {
	host := whileMaking{begun: make(chan string, 2), goOn: make(chan struct{})}
	h := startHouse(t, netns.Options{Host: host})
	h.commit(h.in("a", nsid("red")), h.in("b", nsid("blue")))
	for range 2 { // both at once
		<-host.begun
	}
	// The loop goes on: it asks for the dependencies of new values, and reads the names.
	h.start(h.in("c", nsid("red")))
	h.commit(h.in("d", nil))
	if err := h.sched.Refresh(netns.Name); err != nil {
		t.Fatal(err)
	}
	testkit.Netns(t, "green") // Watch reads the folder after that
	h.awaitState(keys.Namespace("green"), scheduler.Obtained)
	close(host.goOn)
	for _, name := range []string{"a", "b", "c"} {
		h.awaitState(keyOf(name), scheduler.Configured)
	}
	if h.hasLost("red") || h.hasLost("blue") {
		t.Errorf("names that were being made were lost: %v", h.lost)
	}
	for _, name := range []string{"a", "b", "c"} {
		h.unwant(name)
	}
	h.await("both are removed", func() bool { return !exists("red") && !exists("blue") })
}

// Whoever only looks needs no namespace, and notes nothing.
func TestLookingNeedsNothing(t *testing.T) {
	testkit.Netns(t, "theirs")
	known := testkit.Memory{}
	h := startHouse(t, netns.Options{Known: known})
	h.awaitState(keys.Namespace("theirs"), scheduler.Obtained)
	_, err := h.sched.Plan(t.Context(), scheduler.Txn{Changes: []scheduler.Change{h.in("a", nsid("typo")), h.in("b", nsid("theirs"))}})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Netns(t, "later") // Watch reads the folder after that
	h.awaitState(keys.Namespace("later"), scheduler.Obtained)
	if st := h.state(keys.Namespace("typo")); st != scheduler.Nonexistent || len(known) > 0 {
		t.Errorf("after a plan, typo is %v, and it knows %v", st, known)
	}
	// The value of a plan may be declared later, when the namespace is gone: nobody is waited for.
	if err := scratch.DelNetns("theirs"); err != nil {
		t.Fatal(err)
	}
	h.want("b", "theirs")
	h.awaitState(keyOf("b"), scheduler.Configured)
	h.unwant("b")
	h.await("it is removed", func() bool { return !exists("theirs") })
}

// A namespace goes with the last value that names it, even if that one has never been in it.
func TestValueThatFailedLeaves(t *testing.T) {
	h := startHouse(t, netns.Options{})
	h.inside = func(string) error { return scheduler.Terminal(errors.New("no dummies here")) }
	h.want("a", "red")
	h.awaitState(keyOf("a"), scheduler.Failed)
	if !exists("red") {
		t.Error("it was not made")
	}
	h.unwant("a")
	h.await("it is removed", func() bool { return !exists("red") })
	h.awaitState(keys.Namespace("red"), scheduler.Nonexistent)
}

// A verb that hangs delays the removal of a namespace, and nothing else.
func TestHangingVerbBesideARemoval(t *testing.T) {
	h := startHouse(t, netns.Options{})
	h.want("a", "red")
	h.awaitState(keyOf("a"), scheduler.Configured)
	begun, goOn := make(chan struct{}), make(chan struct{})
	h.inside = func(key string) error {
		if key == "other/hangs" {
			close(begun)
			<-goOn
		}
		return nil
	}
	h.start(scheduler.Want("other/hangs", &emptypb.Empty{}))
	<-begun
	h.unwant("a")
	for i := range 20 { // each begins only if the loop goes on
		h.commit(h.in(fmt.Sprint("b", i), nil))
	}
	if st := h.state("other/hangs"); st != scheduler.Pending {
		t.Errorf("the verb that hangs has ended: %v", st)
	}
	close(goOn)
	h.await("it is removed", func() bool { return !exists("red") })
}

// A value that comes and goes before Watch has seen its status leaves no namespace either.
func TestValueThatWatchHasNotSeen(t *testing.T) {
	h := startHouse(t, netns.Options{})
	testkit.Netns(t, "stall")
	h.sched.Observe(scheduler.Observed{Key: keys.Namespace("red"), Value: &emptypb.Empty{}})
	h.want("a", "red")
	h.awaitState(keyOf("a"), scheduler.Configured)
	h.set.RemoveAll(t.Context())
	if !exists("red") {
		t.Error("the namespace of a value was removed")
	}
	h.unwant("a")
	close(h.stall)
	h.await("it is removed", func() bool { return !exists("red") })
}

// A namespace that a verb has entered is not removed below it.
func TestEnteredBeforeItIsRemoved(t *testing.T) {
	h := startHouse(t, netns.Options{})
	h.want("a", "red")
	h.awaitState(keyOf("a"), scheduler.Configured)
	entered, goOn := make(chan struct{}), make(chan struct{})
	h.inside = func(string) error { close(entered); <-goOn; return nil }
	h.unwant("a")
	h.start(h.in("b", nsid("red")))
	<-entered
	removed := make(chan struct{})
	go func() { h.set.RemoveAll(context.Background()); close(removed) }()
	close(goOn)
	<-removed
	h.awaitState(keyOf("b"), scheduler.Configured)
	if !exists("red") {
		t.Error("it was removed")
	}
	h.inside = nil
	h.unwant("b")
	h.await("it is removed", func() bool { return !exists("red") })
}

// A run that is killed between the last value and its namespace leaves it to the next one.
func TestLeftByAnEarlierRun(t *testing.T) {
	testkit.Netns(t, "foreign") // so the folder of names stays a plain one, which other tests remove
	known := testkit.Memory{}
	if err := enter(t, netns.New(netns.Options{Known: known}), "red"); err != nil {
		t.Fatal(err)
	}
	h := startHouse(t, netns.Options{Known: known})
	h.set.Complete()
	h.await("it is removed", func() bool { return !exists("red") })
}

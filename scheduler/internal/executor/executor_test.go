package executor_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// kind is a graph.Kind without any rules.
type kind struct{}

func (kind) Equivalent(_ string, old, new any) bool { return old == new }
func (kind) Recreate(string, any, any, any) bool    { return false }
func (kind) Knowledge() *graph.Knowledge            { return nil }
func (kind) Evidence() value.Evidence               { return value.ReadAlone }
func (kind) Order(string, any) value.Order          { return value.BreakFirst }
func newTask(t *testing.T, g *graph.Graph, key string, v *executor.Verbs) *executor.Task {
	t.Helper()
	g.Want(&graph.Value{Key: key, Data: proto.Message(wrapperspb.String(key)), Kind: kind{}})
	op, ok := g.Next()
	if !ok {
		t.Fatalf("%s: no operation", key)
	}
	return &executor.Task{Op: op, Verbs: v}
}

// TestAbandonedVerbReturnsLate: a verb that hangs is abandoned after the timeout and a tenth,
// does not stop the others of its pool, and becomes a late result when it returns.
func TestAbandonedVerbReturnsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		verbs := &executor.Verbs{Descriptor: "thing", Create: func(_ context.Context, key string, _ proto.Message) (any, error) {
			if key == "hangs" {
				<-release
			}
			return key, nil
		}}
		e := executor.New(10*time.Second, slog.New(slog.DiscardHandler))
		pool, g := e.Pool("system", 1), graph.New()
		begun := time.Now()
		pool.Push(t.Context(), newTask(t, g, "hangs", verbs))
		pool.Push(t.Context(), newTask(t, g, "works", verbs))

		hung, _ := e.Await(t.Context(), nil, nil)
		if len(hung) != 1 || !hung[0].Abandoned || !errors.Is(hung[0].Err, executor.ErrNoAnswer) || time.Since(begun) != 11*time.Second {
			t.Fatalf("after %v: %+v, want one abandoned task after 11s", time.Since(begun), hung)
		}
		if r, ok := e.Running("hangs"); !ok || !r.Abandoned || verbs.Hung() != 1 {
			t.Errorf("running %+v (%v), %d hung; want one abandoned verb", r, ok, verbs.Hung())
		}
		works, _ := e.Await(t.Context(), nil, nil)
		if len(works) != 1 || works[0].Meta != "works" || works[0].Err != nil {
			t.Fatalf("the other task: %+v", works)
		}
		e.Idle()

		close(release)
		<-e.Late()
		late := e.TakeLate()
		if len(late) != 1 || late[0].Meta != "hangs" || late[0].Err != nil || verbs.Hung() != 0 {
			t.Errorf("late results %+v, %d hung; want the result of the verb", late, verbs.Hung())
		}
	})
}

// TestWorkersRest: verbs that follow each other run on one goroutine, which ends with the context. Each
// of them has at least nine tenths of the timeout.
func TestWorkersRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var left []time.Duration
		verbs := &executor.Verbs{Create: func(ctx context.Context, _ string, _ proto.Message) (any, error) {
			deadline, _ := ctx.Deadline()
			left = append(left, time.Until(deadline))
			return nil, nil
		}}
		e := executor.New(10*time.Second, slog.New(slog.DiscardHandler))
		pool, g := e.Pool("system", 4), graph.New()
		for _, key := range []string{"a", "b", "c"} {
			e.Push(ctx, []*executor.Task{newTask(t, g, key, verbs)}, func(*executor.Task) *executor.Pool { return pool })
			if done, _ := e.Await(ctx, nil, nil); len(done) != 1 || done[0].Err != nil {
				t.Fatalf("%s: %+v, want one finished task", key, done)
			}
			synctest.Wait()
			if n := workers(); n != 1 {
				t.Errorf("%s: %d goroutines rest, want one", key, n)
			}
			<-time.After(900 * time.Millisecond)
		}
		if want := []time.Duration{10 * time.Second, 9100 * time.Millisecond, 10 * time.Second}; !slices.Equal(left, want) {
			t.Errorf("verbs had %v, want %v", left, want)
		}
		e.Idle()
		cancel()
		synctest.Wait()
		if n := workers(); n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

// workers counts the goroutines that run verbs. Those of the tests before may still be ending.
func workers() int {
	all := make([]byte, 1<<20)
	return bytes.Count(all[:runtime.Stack(all, true)], []byte("executor.(*Pool).work("))
}

// TestPanicIsAnError: a verb that panics has failed.
func TestPanicIsAnError(t *testing.T) {
	e := executor.New(time.Minute, slog.New(slog.DiscardHandler))
	verbs := &executor.Verbs{Create: func(context.Context, string, proto.Message) (any, error) { panic("broken") }}
	e.Pool("system", 1).Push(t.Context(), newTask(t, graph.New(), "a", verbs))
	if done, _ := e.Await(t.Context(), nil, nil); len(done) != 1 || done[0].Err == nil {
		t.Errorf("%+v, want one failed task", done)
	}
	e.Idle()
}

// TestReadIsAbandoned: a call that ignores its context is abandoned, no other begins before it
// returns, and late is called when it does.
func TestReadIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads executor.Reads
		release, late := make(chan struct{}), make(chan time.Duration, 1)
		read := func(context.Context) (int, error) { <-release; return 1, nil }
		if _, err := executor.Read(t.Context(), &reads, time.Second, read, func(took time.Duration) { late <- took }); !errors.Is(err, executor.ErrNoAnswer) {
			t.Errorf("a read that hangs: %v", err)
		}
		fast := func(context.Context) (int, error) { return 2, nil }
		if _, err := executor.Read(t.Context(), &reads, time.Second, fast, nil); !errors.Is(err, executor.ErrNoAnswer) {
			t.Errorf("a read while another one hangs: %v", err)
		}
		close(release)
		if took := <-late; took != 1100*time.Millisecond {
			t.Errorf("the late read took %v, want 1.1s", took)
		}
		if n, err := executor.Read(t.Context(), &reads, time.Second, fast, nil); n != 2 || err != nil {
			t.Errorf("a read afterwards: %d, %v", n, err)
		}
	})
}

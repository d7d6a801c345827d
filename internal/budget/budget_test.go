package budget_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

const mib = 1 << 20

// enter enters in the test's context, which does not end early.
func enter(t *testing.T, b *budget.Budget, bytes int64) (leave func()) {
	t.Helper()
	leave, err := b.Enter(t.Context(), bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

// TestOldestFirst has a large need wait. Small ones that come later do not overtake it,
// except those that never wait.
func TestOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10 * mib)
		leave := enter(t, b, 4*mib)
		var order []string
		var all sync.WaitGroup
		come := func(name string, bytes int64) {
			all.Go(func() {
				leave := enter(t, b, bytes)
				order = append(order, name)
				leave()
			})
			synctest.Wait()
		}
		come("large", 8*mib)
		come("medium", 4*mib)
		enter(t, b, budget.Small)()
		if _, waiting := b.Inside(); waiting != 2 {
			t.Errorf("%d wait, want 2", waiting)
		}
		leave()
		all.Wait()
		if len(order) != 2 || order[0] != "large" {
			t.Errorf("the order is %v", order)
		}
	})
}

// TestMoreThanAll has a need above the whole budget enter alone, and others wait for it.
func TestMoreThanAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10 * mib)
		huge := enter(t, b, 30*mib)
		entered := make(chan func())
		go func() { entered <- enter(t, b, mib) }()
		synctest.Wait()
		if inside, waiting := b.Inside(); inside != 30*mib || waiting != 1 {
			t.Errorf("%d bytes are inside and %d wait", inside, waiting)
		}
		huge()
		huge() // a second call has no effect
		(<-entered)()
		if inside, _ := b.Inside(); inside != 0 {
			t.Errorf("%d bytes are left", inside)
		}
	})
}

// TestGivenUp has the first of two waiting needs give up. The other enters then, although
// nobody has left.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10 * mib)
		defer enter(t, b, 4*mib)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := make(chan error)
		go func() {
			_, err := b.Enter(ctx, 8*mib)
			first <- err
		}()
		synctest.Wait()
		second := make(chan func())
		go func() { second <- enter(t, b, 2*mib) }()
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		(<-second)()
	})
}

// TestPress takes more than there is, at once, and only later needs wait for it.
func TestPress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10 * mib)
		before := enter(t, b, 8*mib)
		pressed := b.Press(8 * mib)
		entered := make(chan func())
		go func() { entered <- enter(t, b, 2*mib) }()
		before()
		synctest.Wait()
		if inside, waiting := b.Inside(); inside != 10*mib || waiting != 0 {
			t.Errorf("%d bytes are inside and %d wait", inside, waiting)
		}
		pressed()
		(<-entered)()
	})
}

// TestTighten has needs enter one by one, until there is more memory again.
func TestTighten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10 * mib)
		first := enter(t, b, mib)
		b.Tighten(true)
		entered := make(chan func(), 2)
		for range cap(entered) {
			go func() { entered <- enter(t, b, mib) }()
		}
		synctest.Wait()
		expect := func(mibInside int64, wait int) {
			t.Helper()
			synctest.Wait()
			if inside, waiting := b.Inside(); inside != mibInside*mib || waiting != wait {
				t.Errorf("%d bytes are inside and %d wait, want %d MiB and %d", inside, waiting, mibInside, wait)
			}
		}
		expect(1, 2)
		first()
		expect(1, 1)
		b.Tighten(false)
		expect(2, 0)
		(<-entered)()
		(<-entered)()
	})
}

// TestNilHasNoBound uses a nil Budget.
func TestNilHasNoBound(t *testing.T) {
	var b *budget.Budget
	defer enter(t, b, 1<<60)()
	defer b.Press(1 << 60)()
	if inside, waiting := b.Inside(); inside != 0 || waiting != 0 {
		t.Errorf("%d bytes are inside and %d wait", inside, waiting)
	}
}

// TestModel has random needs come, press, give up and leave. At each moment the bytes
// inside are those of the needs that have entered, they exceed the budget only if one is
// alone or pressed, and nobody waits who would fit. In the end nothing is left.
func TestModel(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		needs := rapid.SliceOfN(rapid.Custom(drawNeed), 1, 30).Draw(rt, "needs")
		synctest.Test(t, func(t *testing.T) {
			b := budget.New(10 * mib)
			var mu sync.Mutex
			var inside, pressed int64
			count := 0
			change := func(n need, by int64) {
				mu.Lock()
				defer mu.Unlock()
				inside += by * n.bytes
				count += int(by)
				if n.press {
					pressed += by * n.bytes
				}
				if inside > 10*mib+pressed && count > 1 && pressed == 0 {
					rt.Errorf("%d needs with %d bytes are inside", count, inside)
				}
			}
			var all sync.WaitGroup
			for _, n := range needs {
				<-time.After(n.comes)
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), n.patience)
					defer cancel()
					if n.press {
						leave := b.Press(n.bytes)
						change(n, 1)
						<-time.After(n.stays)
						change(n, -1)
						leave()
						return
					}
					leave, err := b.Enter(ctx, n.bytes)
					if err != nil {
						return
					}
					change(n, 1)
					<-time.After(n.stays)
					change(n, -1)
					leave()
				})
			}
			all.Wait()
			if inside, waiting := b.Inside(); inside != 0 || waiting != 0 {
				rt.Errorf("%d bytes are left and %d wait", inside, waiting)
			}
		})
	})
}

// A need is one user of the budget of TestModel.
type need struct {
	bytes                  int64
	press                  bool
	comes, stays, patience time.Duration // comes: after the one before
}

func drawNeed(t *rapid.T) need {
	ms := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Millisecond
	}
	return need{
		bytes: int64(rapid.IntRange(budget.Small+1, 15*mib).Draw(t, "bytes")), press: rapid.IntRange(0, 5).Draw(t, "press") == 0,
		comes: ms("comes", 5), stays: ms("stays", 20), patience: ms("patience", 100),
	}
}

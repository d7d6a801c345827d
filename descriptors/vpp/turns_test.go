package vpp

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/scheduler"
)

// A guarded is a guard in a bubble of synctest, with a value "bad" of which VPP died.
type guarded struct {
	*testing.T
	*guard
	free chan struct{} // what hangs returns when it is closed
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{t, newGuard(nil, slog.New(slog.DiscardHandler)), make(chan struct{})}
	g.reborn(false)
	if err := g.verb("bad", func() error { return conn.ErrCut }); !errors.Is(err, conn.ErrCut) {
		t.Fatal(err)
	}
	g.reborn(false)
	if err := g.verb("bad", nil); !errors.Is(err, ErrSuspect) {
		t.Fatal(err)
	}
	return g
}

func (g *guarded) verb(key string, verb func() error) error {
	return g.do(key, wrapperspb.String(key), verb)
}

func (g *guarded) hang(key string) {
	go func() {
		if err := g.verb(key, func() error { <-g.free; return nil }); err != nil {
			g.Error(err)
		}
	}()
	synctest.Wait()
}

// within calls the verb of a key, and fails unless it ends in time.
func (g *guarded) within(most time.Duration, key string) error {
	g.Helper()
	begun := time.Now()
	called := false
	err := g.verb(key, func() error { called = true; return nil })
	if took := time.Since(begun); took > most {
		g.Errorf("%s waited %v; expected at most %v", key, took, most)
	}
	if called != (err == nil) {
		g.Errorf("%s: called is %v, and the error %v", key, called, err)
	}
	return err
}

// TestHungSuspectHoldsNobodyUp has the verb of a suspect hang while it runs alone.
func TestHungSuspectHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t)
		defer close(g.free)
		g.hang("bad")
		if err := g.within(patience, "other"); err != nil {
			t.Error(err)
		}
		if err := g.within(0, "another"); err != nil { // it is known by now
			t.Error(err)
		}
	})
}

// TestSuspectDoesNotWaitForHungVerb has another verb hang while a suspect is to run alone.
func TestSuspectDoesNotWaitForHungVerb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t)
		defer close(g.free)
		g.hang("other")
		go func() { _ = g.within(patience, "bad") }()
		synctest.Wait()
		if err := g.within(patience, "another"); err != nil { // it comes after the suspect
			t.Error(err)
		}
		if g.suspicious() {
			t.Error("the suspect was tried alone, and is still suspected")
		}
	})
}

// TestManyHungSuspects has more suspects hang than verbs wait for.
func TestManyHungSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t)
		defer close(g.free)
		keys := []string{"bad1", "bad2", "bad3", "bad4"}
		for _, key := range keys {
			g.suspects.tried(key, wrapperspb.String(key), true)
			g.suspects.byKey[key].put = g.suspects.life // it was put off
		}
		for _, key := range keys[:3] {
			g.hang(key)
			<-time.After(time.Second) // so that no turn comes in the moment in which waiting for it ends
		}
		refused := make(chan error)
		go func() { refused <- g.within(longestTurn, keys[3]) }()
		synctest.Wait()
		if err := g.within(longestTurn, "other"); err != nil {
			t.Error(err)
		}
		if err := <-refused; err == nil || !g.suspicious() {
			t.Errorf("it was not tried alone, and the error is %v", err)
		}
	})
}

// TestSuspectRunsAlone has verbs of many keys wait for the one of a suspect.
func TestSuspectRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t)
		var order []string
		go func() {
			_ = g.verb("bad", func() error { <-g.free; order = append(order, "bad"); return nil })
		}()
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.turns.take(false)
			order = append(order, "other")
		}()
		synctest.Wait()
		close(g.free)
		<-done
		if !slices.Equal(order, []string{"bad", "other"}) {
			t.Errorf("they ran in the order %q", order)
		}
		if g.doAll([]scheduler.KeyValue{}, func() []error { return nil }) != true {
			t.Error("verbs of several values were refused, although nothing is suspected")
		}
	})
}

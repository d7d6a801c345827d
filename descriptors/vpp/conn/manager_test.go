package conn_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
)

// A life is a Manager that runs, with what it tells.
type life struct {
	*conn.Manager
	ready chan conn.About
	lost  chan error
	stop  func() // ends it; also at the end of the test
}

// keep runs a Manager that is told to be quick.
func keep(t testing.TB, o conn.Options) *life {
	l := &life{ready: make(chan conn.About, 10_000), lost: make(chan error, 10_000)}
	o.Ready = func(a conn.About) { l.ready <- a }
	o.Lost = func(err error) { l.lost <- err }
	o.Log = slog.New(slog.DiscardHandler)
	l.Manager = conn.NewManager(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	l.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.stop = func() {}
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// next waits for what a Manager tells.
func next[T any](t testing.TB, told <-chan T) (one T) {
	t.Helper()
	select {
	case one = <-told:
	case <-time.After(testkit.Patience):
		t.Fatal("it says nothing")
	}
	return one
}

func loopback(ctx context.Context, a conn.API) error {
	return a.Call(ctx, &vppif.CreateLoopback{}, &vppif.CreateLoopbackReply{})
}

func TestAbsentThenThere(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	l := keep(t, conn.Options{Socket: socket, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if why := next(t, l.lost); why == nil {
		t.Error("no reason is told")
	}
	if err := loopback(t.Context(), l); !errors.Is(err, conn.ErrLost) || errors.Is(err, conn.ErrCut) {
		t.Errorf("a call without VPP: %v", err)
	}
	if _, err := l.First(&vppif.CreateLoopback{}); !errors.Is(err, conn.ErrLost) || l.Has(&vppif.CreateLoopback{}) {
		t.Errorf("what an absent VPP has: %v", err)
	}
	sim, err := vppsim.New(vppsim.Options{Socket: socket, Release: "24.10"})
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	if about := next(t, l.ready); about.Version != "24.10-simulated" || about.Messages < 10 {
		t.Errorf("it says of itself %+v", about)
	}
	if err := loopback(t.Context(), l); err != nil {
		t.Error(err)
	}
	if n := len(l.lost); n > 1 {
		t.Errorf("one reason was told %d times more", n)
	}
}

// A VPP that comes back is found by its socket, however long the next attempt is away.
func TestBackWhileWaiting(t *testing.T) {
	sim, socket := start(t, vppsim.Options{})
	l := keep(t, conn.Options{Socket: socket, MinBackoff: 24 * time.Hour, MaxBackoff: 24 * time.Hour})
	for range 3 {
		next(t, l.ready)
		sim.Kill()
		for why := next(t, l.lost); !errors.Is(why, conn.ErrLost); { // others are attempts to connect
			why = next(t, l.lost)
		}
		if err := sim.Start(); err != nil {
			t.Fatal(err)
		}
	}
	next(t, l.ready)
}

// A VPP whose socket gets another mode is the same when it is connected again. One that was started anew is not.
func TestSameRun(t *testing.T) {
	sim, socket := start(t, vppsim.Options{})
	l := keep(t, conn.Options{Socket: socket, MinBackoff: time.Millisecond})
	next(t, l.ready)
	if err := os.Chmod(socket, 0o600); err != nil {
		t.Fatal(err)
	}
	sim.Drop()
	if about := next(t, l.ready); !about.Same {
		t.Errorf("with another mode of its socket, VPP counts as %s", about.Run)
	}
	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	if about := next(t, l.ready); about.Same {
		t.Errorf("after a restart, VPP counts as %s still", about.Run)
	}
}

func TestCallInFlightWhenVPPGoes(t *testing.T) {
	sim, socket := start(t, vppsim.Options{})
	l := keep(t, conn.Options{Socket: socket, MinBackoff: time.Millisecond})
	next(t, l.ready)
	sim.Fail("create_loopback", vppsim.Fault{Die: true, Respawn: true, Times: 1})
	err := loopback(t.Context(), l)
	if !errors.Is(err, conn.ErrCut) || !errors.Is(err, conn.ErrLost) || !errors.Is(err, io.EOF) {
		t.Errorf("in flight when VPP died: %v", err)
	}
	next(t, l.lost)
	next(t, l.ready)
	if err := loopback(t.Context(), l); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestCallThatNobodyWaitsForAnyMore(t *testing.T) {
	sim, socket := start(t, vppsim.Options{})
	c := dial(t, socket)
	sim.Fail("create_loopback", vppsim.Fault{Delay: 50 * time.Millisecond, Times: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := loopback(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("too late: %v", err)
	}
	if err := loopback(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its context had ended before: %v", err)
	}
	var second vppif.CreateLoopbackReply
	if err := c.Call(t.Context(), &vppif.CreateLoopback{}, &second); err != nil || second.SwIfIndex != 2 {
		t.Errorf("the next one: %+v, %v", second, err)
	}
}

func TestVPPThatHangs(t *testing.T) {
	sim, socket := start(t, vppsim.Options{})
	l := keep(t, conn.Options{Socket: socket, ProbeInterval: 100 * time.Millisecond, ReplyTimeout: 100 * time.Millisecond, MinBackoff: time.Millisecond})
	next(t, l.ready)
	resume := sim.Hang()
	err := loopback(t.Context(), l)
	for !errors.Is(err, conn.ErrCut) { // a busy machine was silent, and the connection had ended before the call
		if !errors.Is(err, conn.ErrLost) {
			t.Fatalf("a call to a VPP that hangs: %v", err)
		}
		resume()
		next(t, l.ready)
		resume = sim.Hang()
		err = loopback(t.Context(), l)
	}
	if !errors.Is(err, conn.ErrHung) {
		t.Errorf("a call to a VPP that hangs: %v", err)
	}
	for why := next(t, l.lost); !errors.Is(why, conn.ErrHung); { // other reasons are attempts to connect
		why = next(t, l.lost)
	}
	resume()
	next(t, l.ready)
}

// A VPP that takes long for what it is asked is given up, until it is given long enough.
func TestBusyVPP(t *testing.T) {
	sim, socket := start(t, vppsim.Options{})
	l := keep(t, conn.Options{Socket: socket, ProbeInterval: 20 * time.Millisecond, ReplyTimeout: 20 * time.Millisecond, MinBackoff: time.Millisecond})
	if about := next(t, l.ready); about.Same {
		t.Error("the first is the same as the one before")
	}
	sim.Fail("create_loopback", vppsim.Fault{Delay: 300 * time.Millisecond})
	tries := 1
	for err := loopback(t.Context(), l); err != nil; err = loopback(t.Context(), l) {
		if tries++; !errors.Is(err, conn.ErrLost) || tries > 20 {
			t.Fatalf("try %d: %v", tries, err)
		}
		for about := next(t, l.ready); !about.Same; about = next(t, l.ready) {
			t.Error("it is not known to be the same")
		}
	}
	if tries < 2 {
		t.Error("it was never given up")
	}
}

// A quiet VPP is probed, and kept.
func TestVPPThatNobodyCalls(t *testing.T) {
	sim, socket := start(t, vppsim.Options{})
	l := keep(t, conn.Options{Socket: socket, ProbeInterval: time.Millisecond, ReplyTimeout: testkit.Patience})
	next(t, l.ready)
	deadline := time.Now().Add(testkit.Patience)
	for pings := 0; pings < 2; pings += sim.Counts()["control_ping"] {
		if time.Now().After(deadline) {
			t.Fatalf("only %d pings", pings)
		}
		runtime.Gosched()
	}
	if len(l.ready) > 0 || len(l.lost) > 0 {
		t.Error("it was given up")
	}
}

func TestBeginThatFails(t *testing.T) {
	_, socket := start(t, vppsim.Options{})
	nope := errors.New("no events to be had")
	tries := 0
	l := keep(t, conn.Options{Socket: socket, MinBackoff: time.Millisecond, Begin: func(context.Context, *conn.Conn) error {
		if tries++; tries < 3 {
			return nope
		}
		return nil
	}})
	if why := next(t, l.lost); !errors.Is(why, nope) {
		t.Errorf("lost because of %v", why)
	}
	next(t, l.ready)
	if n := len(l.lost); n > 0 {
		t.Errorf("one reason was told %d times more", n)
	}
}

// TestReconnects has 1,000 connections end, each with a call in flight.
func TestReconnects(t *testing.T) {
	before := runtime.NumGoroutine()
	sim, socket := start(t, vppsim.Options{})
	l := keep(t, conn.Options{Socket: socket, MinBackoff: 100 * time.Microsecond, MaxBackoff: 100 * time.Microsecond})
	sim.Fail("create_loopback", vppsim.Fault{Mute: true})
	for range 1000 {
		next(t, l.ready)
		ended := make(chan error, 1)
		go func() { ended <- loopback(t.Context(), l) }()
		for sim.Counts()["create_loopback"] == 0 { // a call that is late is one on the next connection
			runtime.Gosched()
		}
		sim.Drop()
		if err := next(t, ended); !errors.Is(err, conn.ErrLost) {
			t.Fatal(err)
		}
	}
	l.stop()
	sim.Kill()
	deadline := time.Now().Add(testkit.Patience)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

// BenchmarkHungVPP is how long a VPP that hangs goes unnoticed, with all settings at
// their defaults, from a moment at which it was not silent.
func BenchmarkHungVPP(b *testing.B) {
	sim, socket := start(b, vppsim.Options{})
	var worst time.Duration
	for b.Loop() {
		l := keep(b, conn.Options{Socket: socket}) // one that VPP has always answered
		next(b, l.ready)
		if err := l.Call(b.Context(), &memclnt.ControlPing{}, &memclnt.ControlPingReply{}); err != nil {
			b.Fatal(err)
		}
		resume, begun := sim.Hang(), time.Now()
		next(b, l.lost)
		worst = max(worst, time.Since(begun))
		resume()
		l.stop()
	}
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
}

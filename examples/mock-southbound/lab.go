package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// A lab is a scheduler over a memory, and tells what happens.
type lab struct {
	memory *memory
	sched  *scheduler.Scheduler
	line   *scheduler.Connection // nil: there is no connection that could be lost
}

func newLab(out io.Writer, dials, log bool) (*lab, error) {
	// One verb at a time, so that independent ones print in the same order each
	// time; a real southbound would be given as many as it takes.
	opts := scheduler.Options{Log: slog.New(slog.DiscardHandler), Limits: map[string]int{southbound: 1}}
	m := newMemory(out)
	if log {
		opts.Out = m
	}
	l := &lab{memory: m, sched: scheduler.New(opts)}
	if dials {
		line, err := l.sched.Connection(southbound)
		if err != nil {
			return nil, err
		}
		l.line = line
	}
	for _, register := range []func(*scheduler.Scheduler, *memory) error{
		registerInterfaces, registerBridgeDomains, registerFIB, registerRoutes,
	} {
		if err := register(l.sched, l.memory); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// A scenario is a number of steps. After each, all values are shown.
type scenario struct {
	name, about string
	dials       bool // the southbound is reached by a connection
	steps       []step
}

func (s scenario) play(ctx context.Context, out io.Writer, log bool) error {
	l, err := newLab(out, s.dials, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.sched.Run(ctx) }()
	for _, step := range s.steps {
		if err = step(ctx, l); err != nil {
			break
		}
	}
	stop()
	if runErr := <-ended; err == nil {
		err = runErr
	}
	return err
}

// value prepares m, under the key that its content makes.
func (l *lab) value(m proto.Message) (scheduler.Value, error) {
	model, ok := models.ForMessage(m)
	if !ok {
		return scheduler.Value{}, models.ErrNoModel
	}
	key, err := model.Key(m)
	if err != nil {
		return scheduler.Value{}, err
	}
	return l.sched.Value(key, m)
}

// commit tells of errors that verbs make, which the scenarios want them to, below
// what the scheduler's own log says.
func (l *lab) commit(ctx context.Context, about string, txn scheduler.Txn) error {
	l.memory.say("  %s", about)
	txn.Description = about
	rec, err := l.sched.Commit(ctx, txn)
	if rec == nil {
		return err
	}
	if err := l.sched.Flush(ctx); err != nil {
		return err
	}
	if err != nil {
		l.memory.say("    ! %v", err)
	}
	l.show()
	return nil
}

// until waits for a state, and then for the end of the transaction that led to it.
func (l *lab) until(ctx context.Context, key string, state scheduler.State) error {
	w := l.sched.Watch(key)
	defer w.Close()
	for {
		if st, ok := l.sched.Status(key); ok && st.State == state {
			break
		}
		if _, err := w.Next(ctx); err != nil {
			return fmt.Errorf("waiting for %s to be %s: %w", key, state, err)
		}
	}
	if _, err := l.sched.Plan(ctx, scheduler.Txn{}); err != nil {
		return err
	}
	if err := l.sched.Flush(ctx); err != nil {
		return err
	}
	l.show()
	return nil
}

// show tells how all values are.
func (l *lab) show() {
	for _, st := range l.sched.Statuses("") {
		l.memory.say("    %s: %s%s", st.Key, st.State, why(st))
	}
}

// why is what the value waits for, or what went wrong.
func why(st *scheduler.Status) string {
	switch {
	case len(st.Details) > 0:
		return ": " + strings.Join(st.Details, ", ")
	case st.Err != nil:
		return ": " + st.Err.Error()
	}
	return ""
}

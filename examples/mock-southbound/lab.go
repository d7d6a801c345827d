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
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// A lab is a scheduler over a memory. It prints all events.
type lab struct {
	memory *memory
	sched  *scheduler.Scheduler
	line   *scheduler.Connection // nil: the southbound has no connection
	about  string                // the step that is played
	album  *album                // nil: no pictures
}

// newLab makes a scheduler over a southbound in memory. dials says that the southbound has
// a connection, which is lost at first.
func newLab(out io.Writer, dials, log bool) (*lab, error) {
	// One verb runs at a time, so independent operations are printed in the same order
	// each time. A real southbound would allow more.
	opts := scheduler.Options{Log: slog.New(slog.DiscardHandler), Limits: map[string]int{southbound: 1}}
	m := newMemory(out)
	if log {
		opts.TransactionLog = txnlog.New(txnlog.Options{Out: m, Full: true})
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

// A scenario is a list of steps. After each step, all values are printed.
type scenario struct {
	name, about string
	dials       bool // the southbound has a connection
	steps       []step
}

// A show says how scenarios are played.
type show struct {
	out      io.Writer
	log      bool   // with the scheduler's own transaction log
	pictures string // a folder that gets a picture of each scenario; empty: none
}

// play runs the steps of a scenario on a scheduler of its own.
func (s scenario) play(ctx context.Context, how show) error {
	l, err := newLab(how.out, s.dials, how.log)
	if err != nil {
		return err
	}
	if how.pictures != "" {
		l.album = newAlbum(l.sched)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.sched.Run(ctx) }()
	for _, step := range s.steps {
		if err = step(ctx, l); err != nil {
			break
		}
	}
	if err == nil {
		err = l.album.save(how.pictures, s.name)
	}
	stop()
	if runErr := <-ended; err == nil {
		err = runErr
	}
	return err
}

// value prepares m under the key of its content.
func (l *lab) value(m proto.Message) (scheduler.Value, error) {
	model, ok := models.BuiltIn().ForMessage(m)
	if !ok {
		return scheduler.Value{}, models.ErrNoModel
	}
	key, err := model.Key(m)
	if err != nil {
		return scheduler.Value{}, err
	}
	return l.sched.Value(key, m)
}

// begin prints what a step is about.
func (l *lab) begin(about string) {
	l.about = about
	l.memory.say("  %s", about)
}

// commit prints errors of verbs, which the scenarios provoke, below the log of the
// scheduler.
func (l *lab) commit(ctx context.Context, about string, txn scheduler.Txn) error {
	l.begin(about)
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
	return l.show()
}

// until waits for a state, and then for the end of its transaction.
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
	if err := l.sched.Sync(ctx); err != nil {
		return err
	}
	if err := l.sched.Flush(ctx); err != nil {
		return err
	}
	return l.show()
}

// show prints the state of all values, and has them drawn.
func (l *lab) show() error {
	for _, st := range l.sched.Statuses("") {
		l.memory.say("    %s: %s%s", st.Key, st.State, why(st))
	}
	return l.album.add(l.about)
}

// why returns the unmet dependencies or the error of a value.
func why(st *scheduler.Status) string {
	switch {
	case len(st.Details) > 0:
		return ": " + strings.Join(st.Details, ", ")
	case st.Err != nil:
		return ": " + st.Err.Error()
	}
	return ""
}

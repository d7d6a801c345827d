package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// A strip is a southbound with names of interfaces. Only the scheduler calls it while the test
// waits, and only the test while the scheduler is idle, so it needs no lock.
type strip struct {
	stands []string
	broken error // of reading back
	reads  []time.Duration
	start  time.Time
}

func (s *strip) register(t *testing.T, sched *scheduler.Scheduler) {
	t.Helper()
	type none = struct{}
	_, err := scheduler.Register(sched, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(_ context.Context, _ string, v *interfaces.Interface) (none, error) {
			s.stands = append(s.stands, v.GetName())
			return none{}, nil
		},
		Delete: func(_ context.Context, _ string, v *interfaces.Interface, _ none) error {
			s.stands = slices.DeleteFunc(s.stands, func(name string) bool { return name == v.GetName() })
			return nil
		},
		Retrieve: func(context.Context, []scheduler.Desired[*interfaces.Interface]) scheduler.Retrieved[*interfaces.Interface, none] {
			return func(yield func(scheduler.Found[*interfaces.Interface, none], error) bool) {
				s.reads = append(s.reads, time.Since(s.start))
				if s.broken != nil {
					yield(scheduler.Found[*interfaces.Interface, none]{}, s.broken)
					return
				}
				for _, name := range s.stands {
					if !yield(scheduler.Found[*interfaces.Interface, none]{Value: &interfaces.Interface{Name: name}}, nil) {
						return
					}
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// inPeriod runs f with a scheduler over a strip, on which if1 stands, beside a task of the
// configuration. log has the lines of the task.
func inPeriod(t *testing.T, task func(*scheduler.Scheduler, *slog.Logger) Task, f func(s *strip, sched *scheduler.Scheduler, log *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		sched := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		s := &strip{}
		s.register(t, sched)
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- sched.Run(ctx) }()
		v := &interfaces.Interface{Name: "if1"}
		key, err := models.For[*interfaces.Interface]().Key(v)
		if err != nil {
			t.Fatal(err)
		}
		value, err := sched.Value(key, v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sched.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{value.Change()}}); err != nil {
			t.Fatal(err)
		}
		s.start = time.Now()
		go func() { ended <- task(sched, log).Run(ctx) }()
		synctest.Wait()
		f(s, sched, &out)
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
}

// pass lets a time pass, and then waits until everything is idle.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A periodic resync comes after each whole period, repairs what differs, and outlives a failure.
func TestResyncPeriod(t *testing.T) {
	const period = 10 * time.Minute
	inPeriod(t, schedulerConfig{ResyncPeriod: period}.resync, func(s *strip, sched *scheduler.Scheduler, log *bytes.Buffer) {
		pass(period - time.Millisecond)
		if len(s.reads) > 0 {
			t.Errorf("it read back at %v, before the first period", s.reads)
		}
		s.stands = nil // somebody deletes the interface
		pass(time.Millisecond)
		if fmt.Sprint(s.reads, s.stands) != "[10m0s] [if1]" {
			t.Errorf("after the first period: read at %v, %v stands", s.reads, s.stands)
		}
		records := len(sched.History())
		last := sched.History()[records-1]
		if last.Description != "periodic resync" || last.Executed.Len() != 1 || last.Executed.At(0).Verb != scheduler.Create {
			t.Errorf("the record is %+v", last)
		}
		s.broken = errors.New("dump was interrupted")
		pass(period)
		s.broken, s.stands = nil, nil
		pass(time.Second) // what has failed is read again soon
		if len(s.reads) != 3 || fmt.Sprint(s.stands) != "[if1]" {
			t.Errorf("after a failed one: read at %v, %v stands", s.reads, s.stands)
		}
		s.stands = nil
		pass(period - time.Second)
		if len(s.reads) != 4 || s.reads[3] != 3*period || fmt.Sprint(s.stands) != "[if1]" {
			t.Errorf("after the third period: read at %v, %v stands", s.reads, s.stands)
		}
		if strings.Contains(log.String(), "periodic resync failed") {
			t.Errorf("a failure that the record has is logged again:\n%s", log)
		}
	})
}

// The drift is counted after each whole period. It changes nothing, and is logged when it changes.
func TestDriftPeriod(t *testing.T) {
	const period = time.Hour
	inPeriod(t, schedulerConfig{DriftPeriod: period}.drift, func(s *strip, sched *scheduler.Scheduler, log *bytes.Buffer) {
		drifted := func() (n uint64) {
			for _, kinds := range stats.Of(sched).Drift {
				for _, count := range kinds {
					n += count
				}
			}
			return n
		}
		records := len(sched.History())
		said := func(want string) {
			t.Helper()
			if got := log.String(); got != want {
				t.Errorf("the log is\n%s\nwant\n%s", got, want)
			}
			log.Reset()
		}
		pass(period - time.Millisecond)
		if len(s.reads) > 0 || !stats.Of(sched).DriftAt.IsZero() {
			t.Errorf("it read back at %v, before the first period", s.reads)
		}
		pass(time.Millisecond)
		said("")
		s.stands = nil
		pass(period)
		said(`level=WARN msg="values differ from the configured ones; a resync repairs them" values=1 one=config/linux/interfaces/v2/interface/if1 kind=missing` + "\n")
		if at := stats.Of(sched).DriftAt.Sub(s.start); drifted() != 1 || at != 2*period {
			t.Errorf("%d values drifted at %v", drifted(), at)
		}
		pass(period)
		said("")
		s.stands = []string{"if1"}
		pass(period)
		said("level=INFO msg=\"no value differs from the configured ones any more\"\n")
		if drifted() != 0 || len(sched.History()) != records || fmt.Sprint(s.reads) != "[1h0m0s 2h0m0s 3h0m0s 4h0m0s]" {
			t.Errorf("%d values drifted; %d new transactions; read at %v", drifted(), len(sched.History())-records, s.reads)
		}
	})
}

// A period of 0 means never.
func TestNoPeriod(t *testing.T) {
	for _, task := range []func(*scheduler.Scheduler, *slog.Logger) Task{schedulerConfig{}.resync, schedulerConfig{}.drift} {
		inPeriod(t, task, func(s *strip, _ *scheduler.Scheduler, _ *bytes.Buffer) {
			pass(1000 * time.Hour)
			if len(s.reads) > 0 {
				t.Errorf("it read back at %v", s.reads)
			}
		})
	}
}

package txnlog

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// Flush waits for a slow output, and gives up with its context.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gatedWriter{open: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		s := scheduler.New(scheduler.Options{TransactionLog: New(Options{Full: true, Out: out})})
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		if _, err := s.Commit(ctx, scheduler.Txn{Description: "one to be written"}); err != nil {
			t.Fatal(err)
		}

		impatient, stop := context.WithCancel(ctx)
		stop()
		if err := s.Flush(impatient); !errors.Is(err, context.Canceled) {
			t.Errorf("Flush of an output that is stuck: %v, want that its context ended", err)
		}
		close(out.open)
		if err := s.Flush(ctx); err != nil || !strings.Contains(out.String(), "one to be written") {
			t.Errorf("after Flush (%v) the output has %q", err, out.String())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestTransactionsAreLeftOutWhole commits many transactions while nobody reads. Afterwards
// each is written from its beginning to its end, or not at all, and counted.
func TestTransactionsAreLeftOutWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, log := &gatedWriter{open: make(chan struct{})}, &strings.Builder{}
		s := scheduler.New(scheduler.Options{TransactionLog: New(Options{Full: true, Out: out, Log: slog.New(slog.NewTextHandler(log, nil))})})
		stop := runs(t, s)
		const all = maxPages
		for range all {
			if _, err := s.Commit(t.Context(), scheduler.Txn{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the first is being written: the others wait, whenever the writer gets its turn
		}
		lost := int(stats.Of(s).LostTransactions)
		if lost == 0 {
			t.Error("none was left out while nobody read")
		}
		close(out.open)
		synctest.Wait()
		if _, err := s.Commit(t.Context(), scheduler.Txn{Description: "the last"}); err != nil {
			t.Fatal(err)
		}
		stop()
		text := out.String()
		begun, ended := strings.Count(text, "transaction arguments:"), strings.Count(text, "executed operations:")
		if begun != ended || begun+lost != all+1 {
			t.Errorf("of %d transactions %d begin and %d end in the output, and %d were left out", all+1, begun, ended, lost)
		}
		for _, want := range []string{"are not shown", "the last"} {
			if !strings.Contains(text, want) {
				t.Errorf("the output lacks %q", want)
			}
		}
		for _, want := range []string{"too slow", "transactions_left_out="} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log has not once %q: %s", want, log)
			}
		}
	})
}

// TestPlanIsWrittenFirst: at the first verb the plan is in the output.
func TestPlanIsWrittenFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &strings.Builder{}
		log := New(Options{Full: true, Out: out})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- log.Run(ctx) }()
		log.Begin(&scheduler.Record{Type: scheduler.Northbound, Simulated: true})
		if !strings.Contains(out.String(), "planned operations") {
			t.Errorf("written when verbs may begin: %q", out)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestSlowOutputDelaysOnce: a transaction waits for a second for its plan to be written.
// Others do not, until something is written.
func TestSlowOutputDelaysOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gatedWriter{open: make(chan struct{})}
		s := scheduler.New(scheduler.Options{TransactionLog: New(Options{Full: true, Out: out, Log: slog.New(slog.DiscardHandler)}), Simulate: true})
		defer runs(t, s)()
		begun := time.Now()
		for range 10 {
			if _, err := s.Commit(t.Context(), scheduler.Txn{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took != planTimeout {
			t.Errorf("10 transactions take %v while nobody reads, want %v", took, planTimeout)
		}
		if late := stats.Of(s).LostPlans; late != 10 {
			t.Errorf("%d plans were late, want 10", late)
		}
		close(out.open)
		synctest.Wait()
		if _, err := s.Commit(t.Context(), scheduler.Txn{}); err != nil {
			t.Fatal(err)
		}
		if late := stats.Of(s).LostPlans; late != 10 {
			t.Errorf("%d plans were late when somebody reads again, want 10", late)
		}
	})
}

// TestBrokenOutputIsCounted: a transaction of which only the beginning can be written, and one
// of which only the end could, count as lost.
func TestBrokenOutputIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &faultyWriter{faults: []bool{false, true, true, false}}
		s := scheduler.New(scheduler.Options{TransactionLog: New(Options{Full: true, Out: out, Log: slog.New(slog.DiscardHandler)})})
		stop := runs(t, s)
		for range 3 {
			if _, err := s.Commit(t.Context(), scheduler.Txn{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if lost := stats.Of(s).LostTransactions; lost != 2 {
			t.Errorf("%d transactions lost, want 2", lost)
		}
		if n := strings.Count(out.String(), "executed operations:"); n != 1 {
			t.Errorf("%d transactions have an end in the output, want 1: %s", n, out)
		}
		if err := stop(); err == nil {
			t.Error("Run does not say that the output broke")
		}
	})
}

// runs has s run until it is stopped.
func runs(t *testing.T, s *scheduler.Scheduler) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// faultyWriter fails at some of its writes.
type faultyWriter struct {
	faults []bool
	strings.Builder
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	if len(w.faults) > 0 {
		fault := w.faults[0]
		if w.faults = w.faults[1:]; fault {
			return 0, io.ErrShortWrite
		}
	}
	return w.Builder.Write(p)
}

// WriteString keeps io.WriteString from going past Write.
func (w *faultyWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

type gatedWriter struct {
	open chan struct{}
	strings.Builder
}

func (w *gatedWriter) Write(p []byte) (int, error) {
	<-w.open
	return w.Builder.Write(p)
}

// WriteString keeps io.WriteString from going past Write.
func (w *gatedWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// fill adds a page, after which the scheduler makes the texts of further ones.
func fill(log *Log) {
	log.End(&scheduler.Record{Type: scheduler.RetryFailed, Executed: scheduler.Operations{}.With(make([]scheduler.Operation, maxItems)...)})
}

// TestWaitingTextKeepsNoRecord: a record may have a hundred thousand values, and its text may wait for days.
func TestWaitingTextKeepsNoRecord(t *testing.T) {
	for _, full := range []bool{false, true} {
		log, r := New(Options{Full: full, Out: io.Discard}), &scheduler.Record{Type: scheduler.Northbound}
		record := weak.Make(r)
		fill(log)
		log.Begin(r)
		log.End(r)
		runtime.GC()
		if record.Value() != nil {
			t.Errorf("full: %v: the text that waits keeps its record in memory", full)
		}
		runtime.KeepAlive(log)
	}
}

// TestWaitingTextIsBounded adds transactions with long texts while nobody reads. None is added while too much
// text waits.
func TestWaitingTextIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gatedWriter{open: make(chan struct{})}
		log := New(Options{Operations: true, Limit: -1, Out: out, Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- log.Run(ctx) }()
		line := scheduler.Operation{Verb: scheduler.Create, Key: strings.Repeat("x", maxErrorText), NewState: scheduler.Configured}
		r := &scheduler.Record{Type: scheduler.Northbound, Executed: scheduler.Operations{}.With(slices.Repeat([]scheduler.Operation{line}, maxBytes/maxErrorText/2)...)}
		fill(log)
		synctest.Wait() // the writer has taken the first page, but not written it
		for i, want := range []uint64{0, 0, 1, 2} {
			log.End(r)
			if lost, _ := log.Loss(); lost != want {
				t.Errorf("%d of %d transactions lost, want %d", lost, i+1, want)
			}
		}
		close(out.open)
		synctest.Wait()
		if !strings.HasSuffix(out.String(), "… 2 transactions are not shown: the output was too slow\n") {
			t.Error("the output does not say that transactions are not shown")
		}
		log.End(r)
		if lost, _ := log.Loss(); lost != 2 {
			t.Errorf("%d transactions lost when somebody reads again, want 2", lost)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

package scheduler

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// A printer writes the text of transactions on a goroutine of its own, so that
// none waits for a terminal. The text has two halves: what is to be done, and what
// was done. A transaction that finds no room when it begins is left out as a whole.
//
// A planned transaction waits until its plan is written, so that the log has the
// plan whatever the operations do to this process. It waits for planPatience at
// most, and not at all while nothing was written since another waited in vain.
type printer struct {
	out   io.Writer
	limit int
	log   *slog.Logger
	ready chan struct{} // holds a token while there is something to print

	mu      sync.Mutex // guards what follows
	queue   []page
	omitted *uint64 // the number of the transaction in progress, if it is left out
	left    int     // how many were left out since the queue was last taken
	stuck   bool    // a plan was waited for in vain, and nothing was written since
	loss    OutputLoss
}

// OutputLoss counts what Options.Out was to get and did not, because it was too slow
// or refused it.
type OutputLoss struct {
	Transactions uint64 // whose text is not there, or ends in the middle
	Plans        uint64 // that were not written before their transaction was executed
}

// page is the first or the second half of a record's text, or a mark between
// two that somebody waits for.
type page struct {
	rec  *Record
	done bool
	mark chan<- struct{}
}

func (g page) text(limit int) string {
	switch {
	case !g.done:
		return g.rec.beginText(limit)
	case g.rec.inOnePiece() && g.rec.stale():
		return g.rec.staleText()
	case g.rec.inOnePiece():
		return g.rec.Text(limit)
	}
	return g.rec.endText(limit)
}

// inOnePiece says that all of the text is printed in the end: only then it is known
// whether there is anything new.
func (r *Record) inOnePiece() bool { return r.Type == RetryFailed && !r.Simulated }

const (
	// mostPages is how many pages wait for the output before transactions are left out.
	mostPages = 1000
	// planPatience is how long a transaction waits for its plan to be written.
	planPatience = time.Second
)

func newPrinter(out io.Writer, limit int, log *slog.Logger) *printer {
	return &printer{out: out, limit: limit, log: log, ready: make(chan struct{}, 1)}
}

// begin prints what is known before anything is executed.
func (p *printer) begin(r *Record) {
	if p.out != nil && !r.inOnePiece() && p.admit(page{rec: r.kept()}) && r.Simulated {
		p.awaitPlan(r)
	}
}

// end prints what was done. r is kept; see Record.kept.
func (p *printer) end(r *Record) {
	switch {
	case p.out == nil:
	case r.inOnePiece():
		p.admit(page{rec: r, done: true})
	case p.omitted != nil && *p.omitted == r.Seq:
		p.omitted = nil
	default:
		p.add(page{rec: r, done: true})
	}
}

// admit adds the first page of a transaction, if there is room.
func (p *printer) admit(g page) bool {
	p.mu.Lock()
	full := len(p.queue) >= mostPages
	first := full && p.left == 0
	if full {
		p.left++
		p.loss.Transactions++
		if !g.done {
			seq := g.rec.Seq
			p.omitted = &seq
		}
	}
	p.mu.Unlock()
	if first {
		p.log.Warn("transaction log is too slow; transactions are left out until it has caught up", "transaction", g.rec.Seq)
	}
	if !full {
		p.add(g)
	}
	return !full
}

func (p *printer) add(g page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, g)
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// awaitPlan waits until all that was added is written, but not for long.
func (p *printer) awaitPlan(r *Record) {
	p.mu.Lock()
	stuck := p.stuck
	p.mu.Unlock()
	if stuck {
		p.planIsLate()
		return
	}
	written := make(chan struct{})
	p.add(page{mark: written})
	patience := time.NewTimer(planPatience)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
		p.planIsLate()
		p.log.Warn("transaction log is too slow; transactions do not wait for their plans to be written until it has caught up", "transaction", r.Seq, "waited", planPatience)
	}
}

func (p *printer) planIsLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = true
	p.loss.Plans++
}

// Flush waits until the text of all transactions that have ended is written to
// Options.Out, or ctx ends.
func (s *Scheduler) Flush(ctx context.Context) error {
	if s.opts.Out == nil {
		return nil
	}
	written := make(chan struct{})
	s.printer.add(page{mark: written})
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the transaction log: %w", ctx.Err())
	}
}

// lost returns the counts as of now.
func (p *printer) lost() OutputLoss {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loss
}

func (p *printer) take() ([]page, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue, left := p.queue, p.left
	p.queue, p.left = nil, 0
	return queue, left
}

// run prints until stop is closed and all has been printed. It returns the first
// failure to write in the end.
func (p *printer) run(stop <-chan struct{}) error {
	w := writing{printer: p}
	for open := true; open; {
		select {
		case <-p.ready:
		case <-stop:
			open = false
		}
		queue, left := p.take()
		for _, g := range queue {
			w.page(g)
		}
		if left > 0 {
			p.log.Warn("transaction log has caught up", "transactions_left_out", left)
			_ = w.text(fmt.Sprintf("… %d transactions are not shown: the output was too slow\n", left))
		}
	}
	return w.failure
}

// writing is what the goroutine that prints knows.
type writing struct {
	*printer
	failure error   // the first
	failing bool    // the last write did
	broken  *uint64 // the number of the transaction of whose text something is missing
}

func (w *writing) page(g page) {
	switch {
	case g.mark != nil:
		close(g.mark)
	case w.broken != nil && *w.broken == g.rec.Seq: // without its beginning, its end says nothing
	case w.text(g.text(w.limit)) != nil:
		seq := g.rec.Seq
		w.broken = &seq
		w.mu.Lock()
		w.loss.Transactions++
		w.mu.Unlock()
	}
}

// text writes text, and logs when that begins to fail and when it works again.
func (w *writing) text(text string) error {
	_, err := io.WriteString(w.out, text)
	switch {
	case err == nil && w.failing:
		w.log.Info("transactions are written again")
	case err != nil && !w.failing:
		w.log.Error("transactions are not written any more", "err", err)
	}
	w.failing = err != nil
	if err != nil && w.failure == nil {
		w.failure = fmt.Errorf("writing the transaction log: %w", err)
	}
	if err == nil {
		w.mu.Lock()
		w.stuck = false
		w.mu.Unlock()
	}
	return err
}

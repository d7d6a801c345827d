package scheduler

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// printer writes the text of transactions on a goroutine of its own, so that
// none waits for a terminal. When the output is too slow, whole transactions
// are left out, and it says how many.
type printer struct {
	out   io.Writer
	limit int
	log   *slog.Logger
	ready chan struct{} // holds a token while there is something to print

	mu    sync.Mutex
	queue []page
	left  int // out since the last that was printed
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
	case g.rec.stale():
		return g.rec.staleText()
	case g.rec.Type == RetryFailed:
		return g.rec.Text(limit)
	}
	return g.rec.endText(limit)
}

const mostPages = 1000

func newPrinter(out io.Writer, limit int, log *slog.Logger) *printer {
	return &printer{out: out, limit: limit, log: log, ready: make(chan struct{}, 1)}
}

// begin prints what is known before anything is executed.
func (p *printer) begin(r *Record) {
	if r.Type != RetryFailed { // whether there is anything new is known in the end
		p.add(page{rec: r})
	}
}

// end prints what was done.
func (p *printer) end(r *Record) { p.add(page{rec: r, done: true}) }

func (p *printer) add(g page) {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) >= mostPages && g.mark == nil {
		p.left++
		return
	}
	p.queue = append(p.queue, g)
	select {
	case p.ready <- struct{}{}:
	default:
	}
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

func (p *printer) take() ([]page, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue, left := p.queue, p.left
	p.queue, p.left = nil, 0
	return queue, left
}

// run prints until stop is closed and all has been printed. It logs the first
// failure to write, and returns it in the end.
func (p *printer) run(stop <-chan struct{}) (failure error) {
	for open := true; open; {
		select {
		case <-p.ready:
		case <-stop:
			open = false
		}
		queue, left := p.take()
		for _, g := range queue {
			if g.mark != nil {
				close(g.mark)
				continue
			}
			text := g.text(p.limit)
			if _, err := io.WriteString(p.out, text); err != nil && failure == nil {
				failure = fmt.Errorf("writing the transaction log: %w", err)
				p.log.Error("transactions are not written any more", "err", err)
			}
		}
		if left > 0 {
			fmt.Fprintf(p.out, "… %d parts of transactions were not written: the output is too slow\n", left)
		}
	}
	return failure
}

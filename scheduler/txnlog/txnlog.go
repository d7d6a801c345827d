// Package txnlog writes the transactions of a scheduler as text for people.
//
//	log := txnlog.New(txnlog.Options{Out: os.Stdout})
//	s := scheduler.New(scheduler.Options{TransactionLog: log})
//
// By default each transaction is one line. With Options.Operations, each of its values has a line of its own, too. With
// Options.Full, its text has two pages: the intent and the plan before the first operation, and the executed operations
// at the end. The scheduler runs the log; a goroutine
// of its own writes to Out, so that no transaction waits for a slow terminal. What waits to be written
// is bounded in number and memory. A transaction without room is omitted as a whole and counted.
//
// A planned transaction with Options.Full waits until its plan is written, so that the log has the plan even
// if an operation kills the process. It waits at most planTimeout, and not at all while the
// output is stuck.
//
// Text and PlanText render a single record. All texts are bounded, printable and free of
// secrets.
package txnlog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
)

// Options configure a Log.
type Options struct {
	Out io.Writer // required
	// Full writes the boxed text of each transaction; see Text. Defaults to one line for each;
	// see Line.
	Full bool
	// Operations writes one line for each value, below the line of the transaction; see Lines.
	// Full has the operations anyway.
	Operations bool
	// Limit bounds the values and the operations of one transaction; the rest is counted.
	// Defaults to 50. A negative number means no limit.
	Limit int
	Log   *slog.Logger // of problems with Out. Defaults to slog.Default
}

// A Log writes transactions to an output. It is a scheduler.TransactionLog.
type Log struct {
	out   io.Writer
	full  bool
	lines bool // of single operations, unless full
	limit int
	log   *slog.Logger
	ready wake.Signal // set while there is something to print

	mu      sync.Mutex // guards the fields below
	queue   []page
	bytes   int                 // of the texts that are not written yet
	items   int                 // of the records
	omitted map[uint64]struct{} // the numbers of the omitted transactions in progress
	left    int                 // transactions omitted since the last drain
	stuck   bool                // a plan was late, and nothing was written since
	loss    loss
}

// A page is the first or the second half of a text, or a mark. A mark is closed when all
// earlier pages are written.
type page struct {
	seq   uint64
	rec   *scheduler.Record // nil: there is the text instead
	items int               // of the record
	text  string
	done  bool
	mark  chan<- struct{}
}

// newPage returns a page of a record.
func newPage(r *scheduler.Record, done bool) page {
	return page{seq: r.Seq, rec: r, items: 1 + len(r.Values) + r.Executed.Len(), done: done}
}

// pageText writes the text of a page: the beginning of a transaction, its end, or both (see singlePage).
// Unless full, it is the line of a transaction, or its lines.
func (p *Log) pageText(b *bytes.Buffer, g page) {
	limit := p.limit
	switch {
	case g.rec == nil:
		b.WriteString(g.text)
	case !p.full && p.lines:
		b.WriteString(Lines(g.rec, limit))
	case !p.full:
		b.WriteString(Line(g.rec))
	case !g.done:
		beginText(b, g.rec, limit)
	case singlePage(g.rec) && stale(g.rec):
		b.WriteString(staleText(g.rec))
	case singlePage(g.rec):
		fullText(b, g.rec, limit)
	default:
		endText(b, g.rec, limit)
	}
}

// twoPages reports whether the text has a part that is written before the first operation.
func (p *Log) twoPages(r *scheduler.Record) bool { return p.full && !singlePage(r) }

// singlePage reports whether the whole text is written at the end. Only then is it known
// whether a retry has news.
func singlePage(r *scheduler.Record) bool { return r.Type == scheduler.RetryFailed && !r.Simulated }

const (
	// maxPages is the number of waiting pages from which transactions are omitted.
	maxPages = 1000
	// maxBytes is the length of waiting texts from which transactions are omitted.
	maxBytes = 16 << 20
	// maxItems is the number of values and operations in waiting records, which may be a thousand times as large as
	// their texts. The scheduler makes the texts of further pages.
	maxItems = 10_000
	// planTimeout is the longest wait of a transaction for its plan.
	planTimeout = time.Second
)

// New returns a Log. It writes nothing before Run.
func New(opts Options) *Log {
	return &Log{
		out: opts.Out, full: opts.Full, lines: opts.Operations, limit: cmp.Or(opts.Limit, 50), log: cmp.Or(opts.Log, slog.Default()),
		ready: wake.New(),
	}
}

// Begin adds the first page of a transaction. If the transaction is planned, Begin waits
// until the page is written, at most planTimeout.
func (p *Log) Begin(r *scheduler.Record) {
	if p.twoPages(r) && p.admit(newPage(r, false)) && r.Simulated {
		p.awaitPlan(r)
	}
}

// End adds the second page of a transaction.
func (p *Log) End(r *scheduler.Record) {
	switch {
	case !p.twoPages(r):
		p.admit(newPage(r, true))
	case p.wasOmitted(r.Seq):
	default:
		p.add(newPage(r, true))
	}
}

// wasOmitted reports whether the first page of a transaction was omitted, and forgets it.
// Transactions may overlap.
func (p *Log) wasOmitted(seq uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, was := p.omitted[seq]
	delete(p.omitted, seq)
	return was
}

// admit adds the first page of a transaction, if there is room.
func (p *Log) admit(g page) bool {
	p.mu.Lock()
	full := len(p.queue) >= maxPages || p.bytes >= maxBytes
	first := full && p.left == 0
	if full {
		p.left++
		p.loss.transactions++
		p.ready.Set() // the writer says so, even if no page is left to be written
		if !g.done {
			if p.omitted == nil {
				p.omitted = map[uint64]struct{}{}
			}
			p.omitted[g.seq] = struct{}{}
		}
	}
	p.mu.Unlock()
	if first {
		p.log.Warn("transaction log is too slow; transactions are left out until it has caught up", "transaction", g.seq)
	}
	if !full {
		p.add(g)
	}
	return !full
}

// add queues a page. It never waits for the writer.
func (p *Log) add(g page) {
	p.mu.Lock()
	late := p.items+g.items > maxItems && p.items > 0
	p.mu.Unlock()
	if late && g.rec != nil {
		var b bytes.Buffer
		p.pageText(&b, g)
		g = page{seq: g.seq, text: b.String(), done: g.done}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, g)
	p.bytes += len(g.text)
	p.items += g.items
	p.ready.Set()
}

// awaitPlan waits until all pages are written, at most planTimeout.
func (p *Log) awaitPlan(r *scheduler.Record) {
	p.mu.Lock()
	stuck := p.stuck
	p.mu.Unlock()
	if stuck {
		p.countLatePlan()
		return
	}
	written := make(chan struct{})
	p.add(page{mark: written})
	patience := time.NewTimer(planTimeout)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
		p.countLatePlan()
		p.log.Warn("transaction log is too slow; transactions do not wait for their plans to be written until it has caught up", "transaction", r.Seq, "waited", planTimeout)
	}
}

// countLatePlan notes that a plan was not written in time, so operations ran before it.
func (p *Log) countLatePlan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = true
	p.loss.plans++
}

// Flush waits until all ended transactions are written, or ctx ends.
func (p *Log) Flush(ctx context.Context) error {
	written := make(chan struct{})
	p.add(page{mark: written})
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the transaction log: %w", ctx.Err())
	}
}

// Loss returns the number of omitted transactions and late plans.
func (p *Log) Loss() (transactions, plans uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loss.transactions, p.loss.plans
}

// drain takes all queued pages, and the number of omitted transactions. The memory of the written
// pages is for the next ones.
func (p *Log) drain(written []page) ([]page, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue, left := p.queue, p.left
	p.queue, p.left = written[:0], 0
	return queue, left
}

// Run writes pages until ctx ends and all pages are written. Then it returns the first write
// error.
func (p *Log) Run(ctx context.Context) error {
	w := writing{Log: p}
	var queue []page
	for open := true; open; {
		select {
		case <-p.ready.C():
		case <-ctx.Done():
			open = false
		}
		var left int
		queue, left = p.drain(queue)
		for i, g := range queue {
			w.write(g)
			queue[i] = page{} // its text or record may be large
		}
		if left > 0 {
			p.log.Warn("transaction log has caught up", "transactions_left_out", left)
			_ = w.text(fmt.Appendf(nil, "… %d transactions are not shown: the output was too slow\n", left))
		}
	}
	return w.failure
}

// writing is the state of the goroutine that writes.
type writing struct {
	*Log
	page    bytes.Buffer // its memory is used again
	failure error        // the first
	failing bool         // the last write failed
	broken  *uint64      // the number of the last transaction whose beginning could not be written
}

// write writes one page. After a failed beginning, the end of that transaction is dropped.
func (w *writing) write(g page) {
	defer w.release(g)
	switch {
	case g.mark != nil:
		close(g.mark)
	case w.broken != nil && *w.broken == g.seq: // the end is useless without the beginning
	case w.text(w.rendered(g)) != nil:
		seq := g.seq
		w.broken = &seq
		w.mu.Lock()
		w.loss.transactions++
		w.mu.Unlock()
	}
}

// largePage is the length of a text whose memory is not kept.
const largePage = 64 << 10

// rendered returns the text of a page until the next call.
func (w *writing) rendered(g page) []byte {
	if w.page.Cap() > largePage {
		w.page = bytes.Buffer{}
	}
	w.page.Reset()
	w.pageText(&w.page, g)
	return w.page.Bytes()
}

// release makes room for other pages.
func (w *writing) release(g page) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= len(g.text)
	w.items -= g.items
}

// text writes text. It logs the first failure and the recovery.
func (w *writing) text(text []byte) error {
	_, err := w.out.Write(text)
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

// loss counts texts that were not written.
type loss struct{ transactions, plans uint64 }

package scheduler

import "context"

// A TransactionLog writes transactions for people. *txnlog.Log is one. The records that it
// gets are copies with bounded texts; it may keep them.
type TransactionLog interface {
	// Run writes until ctx ends and all pending text is written. Scheduler.Run calls it.
	Run(ctx context.Context) error
	// Begin reports a transaction before its first operation. Execution waits for its
	// return, so it may delay operations until their plan is written.
	Begin(r *Record)
	// End reports the executed transaction. It must not block.
	End(r *Record)
	// Flush waits until all ended transactions are written, or ctx ends.
	Flush(ctx context.Context) error
	// Loss returns the number of transactions with missing or incomplete text, and of plans
	// that were not written before their transaction was executed. A text is lost if the
	// output was too slow for it or refused it.
	Loss() (transactions, plans uint64)
}

// Flush waits until the transaction log has written all ended transactions, or ctx ends.
func (s *Scheduler) Flush(ctx context.Context) error {
	if s.opts.TransactionLog == nil {
		return nil
	}
	return s.opts.TransactionLog.Flush(ctx)
}

// logBegin reports the beginning of a transaction to the transaction log.
func (s *Scheduler) logBegin(r *Record) {
	if s.opts.TransactionLog != nil {
		s.opts.TransactionLog.Begin(r.kept())
	}
}

// outputLoss returns the losses of the transaction log.
func (s *Scheduler) outputLoss() (transactions, plans uint64) {
	if s.opts.TransactionLog == nil {
		return 0, 0
	}
	return s.opts.TransactionLog.Loss()
}

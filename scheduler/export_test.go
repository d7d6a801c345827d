package scheduler

// AwaitPacked waits until the large records of ended transactions are packed in the history. Nothing may end
// meanwhile.
func (s *Scheduler) AwaitPacked() { s.history.Wait() }

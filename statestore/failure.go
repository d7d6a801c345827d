package statestore

// Failure returns why the newest changes are not written; nil: they are, or are about to be.
func (s *Store) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

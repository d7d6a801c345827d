package statestore

// Compact merges the journals of s, if they have grown enough.
func Compact(s *Store) error { return s.compact() }

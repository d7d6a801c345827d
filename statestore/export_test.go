package statestore

// Compact merges the journals of s, if they have grown enough.
func Compact(s *Store) error {
	parts, generation, err := s.rotate(false)
	if err != nil || parts == nil {
		return err
	}
	return s.compact(parts, generation)
}

// BeforeMerging makes each merge of s call do before it reads the files. It is for a Store that does
// not run yet.
func BeforeMerging(s *Store, do func()) { s.mergeHook = do }

// RefuseSync makes the next fdatasync of journals fail with err.
func RefuseSync(err error) {
	was := fdatasync
	fdatasync = func(int) error {
		fdatasync = was
		return err
	}
}

package session

import (
	"errors"
	"fmt"

	"github.com/keyplane/keyplane/kvdbsync"
)

// MayBeWritten reports whether a store may have made changes for which it returned err. A store that
// answers too late, or loses its leader meanwhile, may have made them nevertheless.
func MayBeWritten(err error) bool {
	return !errors.Is(err, kvdbsync.ErrTooLarge) && !errors.Is(err, kvdbsync.ErrReadOnly)
}

// WriteError returns the error of a failed write for people. A nil error stays nil.
func WriteError(err error) error {
	switch {
	case err == nil:
		return nil
	case MayBeWritten(err):
		return fmt.Errorf("the store may have taken the change or not: %w", err)
	}
	return fmt.Errorf("nothing was written: %w", err)
}

package plainfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrForeign says that a folder for the program's own files is not its own.
var ErrForeign = errors.New("expected a folder that belongs to the user of this program, and in which nobody else may write")

// MakeOwn makes a folder for files of this program with mode 0700, if it is missing. Whoever else may write in it could
// have the program change files that only it may change. The error is then ErrForeign.
func MakeOwn(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if user := os.Geteuid(); int(st.Uid) != user || st.Mode&0o022 != 0 {
		return fmt.Errorf("%s: %w: it belongs to user %d and has mode %#o; this program runs as user %d", path, ErrForeign, st.Uid, st.Mode&0o7777, user)
	}
	return nil
}

// ReadOwn returns the content of a file in a folder of the program. A link is refused.
func ReadOwn(path string) ([]byte, error) { return read(path, unix.O_NOFOLLOW) }

// Package settingfile reads files that settings name, such as configuration, passwords and
// certificates.
//
//	text, err := settingfile.Read(cfg.PasswordFile)
//
// Such a name may also be that of a pipe: shells pass secrets through /dev/fd. Nobody may ever
// write into it, and to open or to read a pipe would then block the program for ever, so that no
// signal could end it. So a file is opened without waiting, and a pipe is read for ten seconds.
// A device may have no end. So a file has at most 16 MiB.
package settingfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// Most is the size, in bytes, of the largest file.
	Most = 16 << 20
	// patience is how long a pipe is read.
	patience = 10 * time.Second
)

// Open opens a file for reading, without waiting for the writer of a pipe. Reading from a
// pipe ends after patience with an error that matches os.ErrDeadlineExceeded.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// Plain files have no deadline and need none.
	_ = f.SetReadDeadline(time.Now().Add(patience))
	return f, nil
}

// Read returns the content of a file. Errors are those of os.ReadFile; others begin with the
// path.
func Read(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := ReadAll(f, Most)
	if err != nil {
		if _, named := errors.AsType[*fs.PathError](err); !named {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return nil, err
	}
	return text, nil
}

// errLarge is the error of a file with more than the expected bytes.
var errLarge = errors.New("is too large")

// ReadAll reads an opened file of at most so many bytes.
func ReadAll(f *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("the pipe has no end after %v: %w", patience, err)
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%w: expected at most %d bytes", errLarge, most)
	}
	return text, nil
}

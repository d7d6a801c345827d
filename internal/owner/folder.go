package owner

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The files of a Folder.
const (
	lockFile         = "agent.lock"
	installationFile = "installation"
)

// A Folder is the state folder of one label, which one process has at a time.
type Folder struct {
	// Installation is the id that is kept in the folder. Without a folder it is a new one.
	Installation string

	dir  string
	lock *os.File // nil: it cannot be locked
	log  *slog.Logger
}

// OpenFolder makes the folder if it is not there, and locks it for self's label. The
// error is a *TakenError if a living process has the lock. A folder that cannot be had
// (dir is empty, the disk is read-only) is no error: the installation has a new id then.
func OpenFolder(dir, label string, log *slog.Logger) (*Folder, error) {
	f := &Folder{Installation: NewID(), dir: dir, log: log.With("state_dir", dir)}
	if dir == "" {
		return f, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.log.Warn("no second agent is kept from this state folder", "err", err)
		return f, nil
	}
	lock, err := lockFileOf(filepath.Join(dir, lockFile), label)
	switch {
	case errors.Is(err, ErrTaken):
		return nil, err
	case err != nil:
		f.log.Warn("no second agent is kept from this state folder", "err", err)
	}
	f.lock = lock
	if f.Installation, err = installation(filepath.Join(dir, installationFile)); err != nil {
		f.log.Warn("the id of this installation is not kept: after a restart it has another", "err", err)
	}
	return f, nil
}

// lockFileOf locks a file until the process ends or closes it.
func lockFileOf(path, label string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	defer file.Close()
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: locking: %w", path, err)
	}
	text, _ := os.ReadFile(path)
	holder, _ := parse(text) // one that has just begun has not written yet
	holder.Label = label
	return nil, &TakenError{Holder: holder, Where: "the lock of " + path}
}

// installation reads the id of the installation, or makes a new one. The id is right in
// any case; an error says that the next start will not know it.
func installation(path string) (id string, err error) {
	text, err := os.ReadFile(path)
	if id = strings.TrimSpace(string(text)); err == nil && isID(id) {
		return id, nil
	}
	id = NewID()
	next := path + ".new"
	if err = os.WriteFile(next, []byte(id+"\n"), 0o600); err != nil {
		return id, err
	}
	return id, os.Rename(next, path)
}

func isID(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == len(NewID())/2
}

// Name writes into the lock file who has the lock, for whoever finds it locked.
func (f *Folder) Name(self Holder) {
	if f.lock == nil {
		return
	}
	err := f.lock.Truncate(0)
	if err == nil {
		_, err = f.lock.WriteAt(append(self.bytes(), '\n'), 0)
	}
	if err != nil {
		f.log.Warn("the lock file does not name this agent", "err", err)
	}
}

// Close lets the folder go. The lock file stays: to remove it would let two processes
// lock two files of one name.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

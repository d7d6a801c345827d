package owner

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/plainfile"
)

// The files of a Folder.
const (
	lockFile         = "agent.lock"
	installationFile = "installation"
)

// A Folder is the state folder of one label. One process has it at a time.
type Folder struct {
	// Installation is the ID that is kept in the folder. Without a folder it is a new one.
	Installation string

	dir  string
	lock *os.File // nil: no lock
	log  *slog.Logger
}

// OpenFolder creates the folder if it is missing, and locks it for the label. The error is
// a *TakenError if a running process has the lock, and plainfile.ErrForeign if others may write in the folder. An unusable
// folder (dir is empty, the disk is read-only) is no error: the installation has a new ID then.
func OpenFolder(dir, label string, log *slog.Logger) (*Folder, error) {
	f := &Folder{Installation: NewID(), dir: dir, log: log.With("state_dir", dir)}
	if dir == "" {
		return f, nil
	}
	switch err := plainfile.MakeOwn(dir); {
	case errors.Is(err, plainfile.ErrForeign):
		return nil, fmt.Errorf("state folder %w", err)
	case err != nil:
		f.log.Warn("state folder cannot be locked; a second agent may use it", "err", err)
		return f, nil
	}
	lock, err := lockFileOf(filepath.Join(dir, lockFile), label)
	switch {
	case errors.Is(err, ErrTaken):
		return nil, err
	case err != nil:
		f.log.Warn("state folder cannot be locked; a second agent may use it", "err", err)
	}
	f.lock = lock
	f.Installation, err = installation(filepath.Join(dir, installationFile))
	if err != nil {
		f.log.Warn("the ID of this installation cannot be saved; the next start uses another", "err", err)
	}
	return f, nil
}

// lockFileOf locks a file until the process ends or closes it.
func lockFileOf(path, label string) (*os.File, error) {
	file, err := plainfile.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
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
	text, _ := plainfile.ReadOwn(path)
	holder, _ := parse(text) // a process that has just started has not written its name yet
	holder.Label = label
	return nil, &TakenError{Holder: holder, Where: "the lock of " + path}
}

// installation reads the ID of the installation, or makes a new one. The ID is valid in
// any case. An error means that it could not be saved for the next start.
func installation(path string) (id string, err error) {
	text, err := plainfile.ReadOwn(path)
	id = strings.TrimSpace(string(text))
	if err == nil && isID(id) {
		return id, nil
	}
	id = NewID()
	return id, saveInstallation(path, id)
}

// saveInstallation writes the whole ID or none: half of it, after a loss of power, would be another installation.
func saveInstallation(path, id string) error {
	return renameio.WriteFile(path, []byte(id+"\n"), 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// isID reports whether the text has the form of NewID.
func isID(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == len(NewID())/2
}

// Name writes the holder of the lock into the lock file, for other agents that find the
// file locked.
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

// Verify makes the files of the folder again that somebody has removed or replaced, and locks them for self. The error is a
// *TakenError if another process has the lock of the new file.
func (f *Folder) Verify(self Holder) error {
	if f.lock == nil {
		return nil
	}
	path := filepath.Join(f.dir, lockFile)
	was, err := f.lock.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, was) {
		if err := plainfile.MakeOwn(f.dir); err != nil {
			return err
		}
		lock, err := lockFileOf(path, self.Label)
		if err != nil {
			return err
		}
		_ = f.lock.Close() // nobody finds it any more
		f.lock = lock
		f.Name(self)
	}
	at := filepath.Join(f.dir, installationFile)
	if id, err := plainfile.ReadOwn(at); err == nil && strings.TrimSpace(string(id)) == f.Installation {
		return nil
	}
	return saveInstallation(at, f.Installation)
}

// Close releases the folder. The lock file stays: without it, two processes could lock two
// files of one name.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

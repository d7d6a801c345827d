package kvdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrUnsafe says that users besides the agent's own and root could take the place of the
// socket.
var ErrUnsafe = errors.New("other users can write there")

// secureDirectory makes the directory of a socket, for its owner alone, or checks one that
// is there: nobody but this user and root may be able to put anything into it, or have put it
// there itself. A group of the user's own, with the same number, may write.
func secureDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	link, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if link.Mode()&fs.ModeSymlink != 0 && !ownedByUser(link) {
		return unsafeDirectory(dir, "is a symbolic link of "+ownerOf(link), "remove it")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	user := info.Sys().(*syscall.Stat_t)
	ownGroup := user.Uid == user.Gid
	switch mode := info.Mode(); {
	case !info.IsDir():
		return fmt.Errorf("%s: a file; expected a directory", dir)
	case !ownedByUser(info):
		return unsafeDirectory(dir, "belongs to "+ownerOf(info), "have that user or root remove it")
	case mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && !ownGroup:
		return unsafeDirectory(dir, fmt.Sprintf("has the mode %04o", user.Mode&0o7777), "chmod go-w it")
	}
	return nil
}

func unsafeDirectory(dir, why, remedy string) error {
	return fmt.Errorf("%w: the directory %s %s; expected one that only the user %d can write: %s, or choose another place for the socket",
		ErrUnsafe, dir, why, os.Geteuid(), remedy)
}

// ours tells whether a file belongs to this user or root.
func ownedByUser(info fs.FileInfo) bool {
	uid := info.Sys().(*syscall.Stat_t).Uid
	return uid == 0 || int(uid) == os.Geteuid()
}

func ownerOf(info fs.FileInfo) string {
	return fmt.Sprintf("the user %d", info.Sys().(*syscall.Stat_t).Uid)
}

// A holder is the agent that has a socket, as the lock file names it.
type holder struct {
	PID   int    `json:"pid"`
	Label string `json:"label"`
}

// A placeLock is the lock of a socket's place: a file that this process has locked.
type placeLock struct {
	file *os.File
	once sync.Once
}

// Close removes the lock file and lets the lock go. Later calls do nothing.
func (l *placeLock) Close() {
	l.once.Do(func() {
		os.Remove(l.file.Name()) // first: without the lock it may be another's
		l.file.Close()
	})
}

// lockSocket takes the lock of a socket. It does not wait: the error is ErrInUse, and names
// the holder. The lock file is for this user alone, so that no other can lock it.
func lockSocket(socket, label string) (*placeLock, error) {
	path := socket + ".lock"
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock file: %w", err)
		}
		if err := takeLock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if !isHeld(f) { // an agent that has just ended has removed it
			f.Close()
			continue
		}
		lock := &placeLock{file: f}
		if err := name(f, holder{os.Getpid(), label}); err != nil {
			lock.Close()
			return nil, fmt.Errorf("lock file: %w", err)
		}
		return lock, nil
	}
}

// stands tells whether an open file is still the one of its name.
func isHeld(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, there)
}

func takeLock(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || !ownedByUser(info) {
		return fmt.Errorf("%w: the lock file %s belongs to %s or is no regular file: remove it", ErrUnsafe, f.Name(), ownerOf(info))
	}
	if info.Mode().Perm() != 0o600 {
		if err := f.Chmod(0o600); err != nil {
			return err
		}
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	var h holder
	if json.NewDecoder(f).Decode(&h) != nil || h.PID == 0 { // it has just begun
		return ErrInUse
	}
	return fmt.Errorf("%w: the process with pid %d, label %q", ErrInUse, h.PID, h.Label)
}

// name writes into the lock file who has the lock.
func name(f *os.File, h holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(text, '\n'), 0)
	return err
}

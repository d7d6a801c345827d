package kvdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/reach"
)

// ErrUnsafe reports that a user other than the agent's own and root could replace
// the socket.
var ErrUnsafe = reach.ErrUnsafe

// secureDirectory creates the directory of a socket with mode 0700, or checks an
// existing one. Only this user and root may be able to write to it or own it. Write
// permission for the user's private group (same number) is allowed: some systems set
// it by umask. made tells that it is new.
func secureDirectory(dir string) (made bool, err error) {
	// Not MkdirAll first: the kernel may refuse to follow a link of another user
	// (fs.protected_symlinks), and that error would not name the link.
	link, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, err
		}
		made = true
		link, err = os.Lstat(dir)
	}
	if err != nil {
		return made, err
	}
	if link.Mode()&fs.ModeSymlink != 0 && !ownedByUser(link) {
		return made, unsafeDirectory(dir, "is a symbolic link of "+ownerOf(link), "remove it")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return made, err
	}
	user := info.Sys().(*syscall.Stat_t)
	ownGroup := user.Uid == user.Gid
	switch mode := info.Mode(); {
	case !info.IsDir():
		return made, fmt.Errorf("%s: a file; expected a directory", dir)
	case !ownedByUser(info):
		return made, unsafeDirectory(dir, "belongs to "+ownerOf(info), "have that user or root remove it")
	case mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && !ownGroup:
		return made, unsafeDirectory(dir, fmt.Sprintf("has the mode %04o", user.Mode&0o7777), "chmod go-w it")
	}
	return made, nil
}

// share lets the members of the group open the socket. They can enter its directory if the agent has made it, now or
// at an earlier start; that of an operator keeps its mode.
func (s *Server) share(made bool) error {
	if s.Group == 0 {
		return nil
	}
	dir := filepath.Dir(s.Socket)
	if made || dir == filepath.Dir(reach.DefaultSocket("")) {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm() == 0o700 {
			err = openTo(dir, s.Group, 0o710)
		}
		if err != nil {
			return err
		}
	}
	return openTo(s.Socket, s.Group, 0o660)
}

// openTo gives a file to a group. The group comes before the mode: the members of the earlier group get no rights. A
// file of an agent that runs with this group has it already, and the service manager may forbid the call.
func openTo(path string, group int, mode fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if int(info.Sys().(*syscall.Stat_t).Gid) != group {
		if err := os.Lchown(path, -1, group); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode)
}

// unsafeDirectory returns ErrUnsafe with the reason and the remedy.
func unsafeDirectory(dir, why, remedy string) error {
	return fmt.Errorf("%w: the directory %s %s; expected one that only the user %d can write: %s, or choose another place for the socket",
		ErrUnsafe, dir, why, os.Geteuid(), remedy)
}

// ownedByUser reports whether the file belongs to this user or root.
func ownedByUser(info fs.FileInfo) bool {
	uid := info.Sys().(*syscall.Stat_t).Uid
	return uid == 0 || int(uid) == os.Geteuid()
}

// ownerOf names the owner of a file.
func ownerOf(info fs.FileInfo) string {
	return fmt.Sprintf("the user %d", info.Sys().(*syscall.Stat_t).Uid)
}

// A holder describes the agent that holds the lock. It is the content of the lock
// file.
type holder struct {
	PID   int    `json:"pid"`
	Label string `json:"label"`
}

// A placeLock holds the lock file of a socket. The kernel releases the lock when the
// process ends for any reason.
type placeLock struct {
	file *os.File
	once sync.Once
}

// Close removes the lock file and releases the lock. It is idempotent.
func (l *placeLock) Close() {
	l.once.Do(func() {
		os.Remove(l.file.Name()) // before the release: afterwards the file may belong to another agent
		l.file.Close()
	})
}

// lockSocket takes the lock of a socket without waiting. If another agent holds it,
// the error is ErrInUse and names that agent. The file has mode 0600, so that other
// users cannot lock it.
func lockSocket(socket, label string) (*placeLock, error) {
	path := socket + ".lock"
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock file: %w", err)
		}
		if err := takeLock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if !isHeld(f) { // another agent removed the file between open and lock
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

// isHeld reports whether the open file is still the file with this name.
func isHeld(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, there)
}

// wayOut tells the user of a second agent what to do.
const wayOut = "stop it, or give this one another label and state-dir"

// takeLock locks the file, after it checks that no other user has put it there.
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
	if json.NewDecoder(f).Decode(&h) != nil || h.PID == 0 { // the holder has not written its name yet
		return fmt.Errorf("%w: %s", ErrInUse, wayOut)
	}
	return fmt.Errorf("%w: the process with pid %d, label %q: %s", ErrInUse, h.PID, h.Label, wayOut)
}

// name writes the holder into the lock file.
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

package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/keyplane/keyplane/internal/links"
	"github.com/keyplane/keyplane/internal/plainfile"
)

// verify closes the file if another one is at the path, or if another program has written
// it. The mutex is held.
func (db *DB) verify() error {
	if db.file == nil {
		return nil
	}
	now, err := os.Stat(db.cfg.Path)
	switch {
	case err != nil || !os.SameFile(now, db.info):
		db.endSessions()
		return db.shut(ErrReplaced)
	case now.Size() != db.info.Size() || !now.ModTime().Equal(db.info.ModTime()):
		db.suspect = true
		db.endSessions()
		return db.shut(ErrChanged)
	}
	return nil
}

// note records the file's present state, to detect writes of other programs.
func (db *DB) note() {
	if info, err := db.handle.Stat(); err == nil {
		db.info = info
	}
}

// identity returns the device and inode of a file, which distinguish it from its
// replacement. Empty means unknown.
func identity(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%x-%x", st.Dev, st.Ino)
}

// opener returns an os.OpenFile that keeps the opened file in handle. It does not create a
// file if there was one before, and refuses a file that has lost its end.
func (db *DB) opener(path string, flag int, mode os.FileMode) (*os.File, error) {
	if db.info != nil {
		flag &^= os.O_CREATE
	}
	file, err := openFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	if err := db.admit(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	db.handle = file
	return file, nil
}

// openFile opens a file, if it is one.
func openFile(path string, flag int, mode os.FileMode) (*os.File, error) {
	file, err := plainfile.OpenFile(path, flag, mode)
	if errors.Is(err, plainfile.ErrNoFile) {
		return nil, fmt.Errorf("%w: it is no regular file", ErrDamaged)
	}
	return file, err
}

// admit returns an error if the library must not open the file.
func (db *DB) admit(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		if db.info != nil {
			return fmt.Errorf("%w: it is empty, as if it were about to be written", ErrDamaged)
		}
		return nil
	}
	h, err := checkSize(file, info.Size())
	if err != nil {
		return err
	}
	if h.readable && !h.freelist {
		db.suspect = true // the library would walk through it in a goroutine without a recover
	}
	return nil
}

// A place wakes a watch when another file may be at its path. If the kernel has no watches
// left, it wakes the watch every second.
type place struct {
	names    map[string]bool // file names in events about the path
	notifier *fsnotify.Watcher
	ticker   *time.Ticker
}

// watchPlace watches the folder of the file, and that of each link on the way to it. Without inotify it looks every
// second.
func watchPlace(path string) *place {
	p := &place{names: map[string]bool{}}
	var err error
	p.notifier, err = fsnotify.NewWatcher()
	for _, at := range links.Places(path) {
		if err == nil {
			err = p.add(at)
		}
	}
	if err != nil {
		p.ticker = time.NewTicker(time.Second)
	}
	return p
}

// add watches the folder of a file or link, because a rename is an event of the folder.
func (p *place) add(path string) error {
	p.names[path], p.names[filepath.Dir(path)] = true, true
	return p.notifier.Add(filepath.Dir(path))
}

// concerns reports whether an event is about the path and not about another file. Each
// transaction of the DB itself causes such an event too.
func (p *place) concerns(e fsnotify.Event) bool {
	return p.names[e.Name] && e.Op&(fsnotify.Create|fsnotify.Remove|fsnotify.Rename|fsnotify.Write) != 0
}

// events returns nil without inotify: a select never takes a nil channel.
func (p *place) events() <-chan fsnotify.Event {
	if p.notifier == nil {
		return nil
	}
	return p.notifier.Events
}

// errors returns nil without inotify.
func (p *place) errors() <-chan error {
	if p.notifier == nil {
		return nil
	}
	return p.notifier.Errors
}

// tick returns nil with inotify.
func (p *place) tick() <-chan time.Time {
	if p.ticker == nil {
		return nil
	}
	return p.ticker.C
}

// close ends the watches, or the ticker.
func (p *place) close() {
	if p.notifier != nil {
		_ = p.notifier.Close() // never fails
	}
	if p.ticker != nil {
		p.ticker.Stop()
	}
}

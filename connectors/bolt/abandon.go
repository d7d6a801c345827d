package bolt

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/mappings"
)

// abandon gives up the open file after the library has panicked in it. The library then
// still holds its own locks, and any further call, including Close, would wait for them
// forever. So no function of it is called again. The memory, the lock on the file and the
// descriptor are released here. The caller holds the mutex, so no other goroutine uses
// them.
func (db *DB) abandon(reason error) {
	db.endWatches(reason)
	db.endSessions()
	handle := db.handle
	db.file, db.handle, db.suspect = nil, nil, true
	if handle != nil {
		release(handle)
	}
}

// release undoes the steps of opening. The lock is released explicitly, because a mapping
// that could not be removed would keep it. A failure here leaks memory or a descriptor and
// has no other effect.
func release(handle *os.File) {
	if info, err := handle.Stat(); err == nil {
		unmap(info)
	}
	if raw, err := handle.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Flock(int(fd), unix.LOCK_UN) })
	}
	_ = handle.Close()
}

// unmap removes the mappings of a file from this process. The lock on the file
// makes sure that only the abandoned database has one.
func unmap(info os.FileInfo) {
	parts, err := mappings.Of(info)
	if err != nil {
		return
	}
	for _, part := range parts {
		_, _, _ = syscall.Syscall(syscall.SYS_MUNMAP, part.From, part.To-part.From, 0)
	}
}

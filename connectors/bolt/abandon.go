package bolt

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
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
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	want := fmt.Sprintf("%02x:%02x %d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if from, to, ok := mappingOf(lines.Text(), want); ok {
			_, _, _ = syscall.Syscall(syscall.SYS_MUNMAP, from, to-from, 0)
		}
	}
}

// mappingOf reads a line of /proc/self/maps. ok is false if the line has another device or
// inode. An example of a line:
//
//	7f00-7f10 r--s 00000000 fd:01 1234  /path
func mappingOf(line, deviceAndInode string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[3]+" "+fields[4] != deviceAndInode {
		return 0, 0, false
	}
	begin, end, _ := strings.Cut(fields[0], "-")
	a, err := strconv.ParseUint(begin, 16, 64)
	b, err2 := strconv.ParseUint(end, 16, 64)
	return uintptr(a), uintptr(b), errors.Join(err, err2) == nil
}

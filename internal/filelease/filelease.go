// Package filelease tells whether any process has a file open for writing.
//
//	switch filelease.Take(f) {
//	case filelease.Writing: // look again later
//	case filelease.Closed:  // content read before f is closed is whole
//	case filelease.Unknown: // the file system does not tell
//	}
//
// It asks the kernel for a read lease (fcntl(2), F_SETLEASE). The kernel refuses a lease
// while a process of any container has the file open for writing. While the lease is held,
// a process that opens the file for writing waits. So no delay is needed and no writer is
// too slow. The alternative is a search of the descriptors of all processes (/proc/*/fd).
// It costs more, does not see the processes of other PID namespaces, and leaves a moment
// between the search and the read.
//
// Only the owner of a file, or a process with CAP_LEASE, gets a lease. On a file system
// that several hosts share, the kernel knows only the writers of this host, if any. In
// these cases the answer is Unknown.
//
// Tests: real files, and the table of file systems.
package filelease

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A Writer states whether a file is being written.
type Writer int

const (
	Closed  Writer = iota // no process has the file open for writing, and none will before the lease ends
	Writing               // a process has it open for writing
	Unknown               // the kernel cannot tell
)

// Take asks for a lease on an open file. A lease ends when the file is closed.
func Take(f *os.File) Writer {
	raw, err := f.SyscallConn() // f.Fd would make later reads block a thread
	if err != nil {
		return Unknown
	}
	var lease error
	var at unix.Statfs_t
	err = raw.Control(func(fd uintptr) {
		_, lease = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
		if unix.Fstatfs(int(fd), &at) != nil {
			at.Type = 0
		}
	})
	if err != nil {
		return Unknown
	}
	return decide(lease, sharingOf(uint32(at.Type)))
}

// A sharing states which other hosts may write to a file system.
type sharing int

const (
	local     sharing = iota
	relayed           // other hosts may; this kernel knows the writers of this host
	delegated         // other hosts may; the server grants or refuses a lease for its own reasons
)

// sharingOf recognizes file systems by their numbers (statfs(2)).
func sharingOf(fileSystem uint32) sharing {
	switch fileSystem {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return delegated
	case unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC, gfs2, lustre, vboxsf:
		return relayed
	}
	return local
}

// File systems without a name in x/sys.
const (
	gfs2   = 0x01161970
	lustre = 0x0bd00bd0
	vboxsf = 0x786f4256
)

// decide interprets an answer of the kernel.
func decide(lease error, s sharing) Writer {
	switch {
	case lease == nil && s != relayed:
		return Closed
	case errors.Is(lease, unix.EAGAIN) && s != delegated:
		return Writing
	}
	return Unknown
}

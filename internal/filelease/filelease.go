// Package filelease tells whether anybody has a file open for writing.
//
//	switch filelease.Take(f) {
//	case filelease.Writing: // look again later
//	case filelease.Closed:  // what is read before f is closed is whole
//	case filelease.Unknown: // the file system does not tell
//	}
//
// It asks the kernel for a read lease (fcntl(2), F_SETLEASE). The kernel refuses one while
// anyone has the file open for writing, in any process of any container, and as long as
// the lease is held, whoever opens the file for writing waits. So no delay is needed and
// no writer is too slow. The alternative, to search the descriptors of all processes
// (/proc/*/fd), costs more, does not see the processes of other PID namespaces, and leaves
// a moment between the search and the read.
//
// Only the owner of a file, or a process with CAP_LEASE, is given a lease, and a file system
// that several hosts share knows the writers of this host at most. In these cases the answer
// is Unknown.
//
// Tests: real files, and the table of file systems.
package filelease

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A Writer says whether a file is being written.
type Writer int

const (
	Closed  Writer = iota // nobody has the file open for writing, nor will before the lease ends
	Writing               // somebody has it open for writing
	Unknown               // that cannot be known
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

// A sharing is who may write to a file system besides this host.
type sharing int

const (
	local     sharing = iota
	relayed           // others may; this kernel knows the writers of this host
	delegated         // others may; the server grants a lease or refuses it, for reasons of its own
)

// sharingOf knows file systems by their numbers (statfs(2)).
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

// File systems that have no name in x/sys.
const (
	gfs2   = 0x01161970
	lustre = 0x0bd00bd0
	vboxsf = 0x786f4256
)

// decide says what an answer of the kernel means.
func decide(lease error, s sharing) Writer {
	switch {
	case lease == nil && s != relayed:
		return Closed
	case errors.Is(lease, unix.EAGAIN) && s != delegated:
		return Writing
	}
	return Unknown
}

package conn

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/bootid"
)

// clues tell two connections to the same run of VPP from connections to two runs. A process id alone does not do that:
// in a container it is always 1. A part that is missing is empty.
//
//	part    what                          ends with the run because               missing if
//	boot    boot id                       the kernel draws one at each boot       /proc is not that of Linux
//	pid     process id in VPP's answer    another process usually has another     never
//	start   peer's process and its start  another process started later           VPP is in a PID namespace that we do not see
//	socket  socket file, and when it was  VPP makes a new one when it starts      the file was removed
//	        made
//
// The socket's file has the time of its content, which never changes, and not that of its owner and mode, which
// people change beside a running VPP.
type clues struct {
	boot          string
	pid           uint32
	start, socket string
}

// identity describes the run of VPP at the other end of a connection. A run that is unclear gets a name that no other
// connection has.
func identity(c *Conn, socket string) string {
	all := clues{boot: bootid.Read(), pid: c.pid}
	peer := peerOf(c.sock)
	if start := startOf(peer); start != "" {
		all.start = fmt.Sprintf("%d at %s", peer, start)
	}
	var file unix.Stat_t
	if unix.Stat(socket, &file) == nil {
		all.socket = fmt.Sprintf("%d:%d of %d.%09d", file.Dev, file.Ino, file.Mtim.Sec, file.Mtim.Nsec)
	}
	if all.unclear() {
		return "unclear " + rand.Text()
	}
	return all.String()
}

// unclear reports whether two runs may have the same clues. Without the socket's file, only the start of the process
// tells them apart, and it counts from the boot.
func (c clues) unclear() bool { return c.socket == "" && (c.boot == "" || c.start == "") }

// String implements fmt.Stringer.
func (c clues) String() string {
	or := func(part string) string { return cmp.Or(part, "?") }
	return fmt.Sprintf("boot %s, process %d started as %s, socket %s", or(c.boot), c.pid, or(c.start), or(c.socket))
}

// peerOf returns the id of the process at the other end; 0: it is not known, or not visible here.
func peerOf(sock net.Conn) (pid int32) {
	unixSock, ok := sock.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := unixSock.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = cred.Pid
		}
	})
	return pid
}

// startOf returns the start of a process, in the kernel's ticks since the boot: field 22 of /proc/PID/stat, see
// proc_pid_stat(5). Empty: it is not known.
func startOf(pid int32) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if pid == 0 || err != nil {
		return ""
	}
	// The name of the program, in parentheses, may have spaces.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const start = 22 - 3 // the fields begin with the third
	if len(fields) <= start {
		return ""
	}
	return string(fields[start])
}

package conn

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// identity describes a run of VPP, so that two connections to the same run can be told from connections
// to two of them. A process id alone does not do that: in a container it is always 1. A run that is unclear gets a
// name that no other connection has.
//
//	part                        ends with the run because                    missing if
//	boot id                     the kernel draws one at each boot            /proc is not that of Linux
//	process id in VPP's answer  another process usually has another          never
//	start of the peer's process another process started later                VPP is in a PID namespace that we do not see
//	socket file                 VPP makes a new one when it starts           never
func identity(c *Conn, socket string) string {
	var file unix.Stat_t
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || unix.Stat(socket, &file) != nil {
		return "unclear " + rand.Text()
	}
	return fmt.Sprintf("boot %s, process %d started at %s, socket %d:%d of %d.%09d",
		bytes.TrimSpace(boot), c.pid, startOf(peerOf(c.sock)), file.Dev, file.Ino, file.Ctim.Sec, file.Ctim.Nsec)
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
// proc_pid_stat(5). "?": it is not known.
func startOf(pid int32) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if pid == 0 || err != nil {
		return "?"
	}
	// The name of the program, in parentheses, may have spaces.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const start = 22 - 3 // the fields begin with the third
	if len(fields) <= start {
		return "?"
	}
	return string(fields[start])
}

// Detained runs a program whose reads of the kernel a test can hold back. Package detain starts it:
//
//	detained PROGRAM ARG...
//
// It installs a filter (seccomp(2)) that has the kernel ask before each read, sends the file descriptor of these
// questions over its descriptor 3, and becomes the program.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	err := watched()
	if err == nil {
		err = unix.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "detained:", err)
	os.Exit(1)
}

// watched installs the filter for this thread, which becomes the first one of the program.
func watched() error {
	runtime.LockOSThread()
	const (
		load, equal, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		ask, allow       = 0x7fc00000, 0x7fff0000 // SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ALLOW
	)
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the number of the system call
		{Code: equal, K: unix.SYS_SENDTO, Jt: 1},
		{Code: equal, K: unix.SYS_GETDENTS64, Jf: 1},
		{Code: end, K: ask},
		{Code: end, K: allow},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without this, only a privileged process may install a filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	questions, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	// This is not sendto(2), which would wait for an answer already.
	if err := syscall.Sendmsg(3, []byte{0}, syscall.UnixRights(int(questions)), nil, 0); err != nil {
		return fmt.Errorf("sending the descriptor: %w", err)
	}
	unix.CloseOnExec(int(questions))
	unix.CloseOnExec(3)
	return nil
}

// Package detain runs a program, and holds back single kinds of what it reads from the kernel. So a test decides in
// which order a program learns what there is, without a delay of its own:
//
//	p, err := detain.Start(cmd, detained)  // detained is the program of that name in this folder, built
//	p.Hold(detain.Links)                   // from now on, lists of links do not begin
//	p.Release(detain.Links)
//
// The kernel asks before each sendto(2) and getdents64(2) of the program and its children (seccomp_unotify(2)). A
// request for a list over netlink, or a listing of the folder of named namespaces, waits while its kind is held;
// everything else goes on at once. One goroutine answers until all of these processes have ended.
package detain

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Kind is what a program reads.
type Kind string

// These are all kinds.
const (
	Links      Kind = "links"
	Addresses  Kind = "addresses"
	Routes     Kind = "routes"
	Neighbours Kind = "neighbours"
	Namespaces Kind = "namespaces"
)

// kinds are those of requests over netlink.
var kinds = map[uint16]Kind{unix.RTM_GETLINK: Links, unix.RTM_GETADDR: Addresses, unix.RTM_GETROUTE: Routes, unix.RTM_GETNEIGH: Neighbours}

// names is the folder of named namespaces.
const names = "/run/netns"

// A Program is one that runs.
type Program struct {
	questions int // a file descriptor; the goroutine of answer owns it

	mu      sync.Mutex             // guards held and waiting
	held    map[Kind]chan struct{} // closed by Release
	waiting map[Kind]int
}

// Start starts cmd by the program detained. The caller waits for its end.
func Start(cmd *exec.Cmd, detained string, held ...Kind) (*Program, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	cmd.Args = append([]string{detained, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.ExtraFiles = detained, []*os.File{theirs}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, err
	}
	questions, err := receive(pair[0])
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	p := &Program{questions: questions, held: map[Kind]chan struct{}{}, waiting: map[Kind]int{}}
	for _, kind := range held {
		p.Hold(kind)
	}
	go p.answer()
	return p, nil
}

// receive returns the file descriptor that detained sends.
func receive(socket int) (int, error) {
	control := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := syscall.Recvmsg(socket, make([]byte, 1), control, syscall.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := syscall.ParseSocketControlMessage(control[:n])
	if err != nil {
		return 0, err
	}
	if len(messages) != 1 {
		return 0, errors.New("the program could not be started; its output says why")
	}
	all, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// Hold has reads of a kind wait.
func (p *Program) Hold(kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[kind] == nil {
		p.held[kind] = make(chan struct{})
	}
}

// Release ends Hold. The reads that wait go on.
func (p *Program) Release(kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[kind] != nil {
		close(p.held[kind])
		delete(p.held, kind)
	}
}

// Waiting returns how many reads of a kind have waited, or wait.
func (p *Program) Waiting(kind Kind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting[kind]
}

// notification is struct seccomp_notif of linux/seccomp.h.
type notification struct {
	id         uint64
	pid, flags uint32
	call       int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

// answer answers until no process is left.
func (p *Program) answer() {
	defer unix.Close(p.questions)
	for {
		ready := []unix.PollFd{{Fd: int32(p.questions), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		if p.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != nil {
			continue // the process that asked was killed
		}
		released := p.mustWait(kindOf(&n))
		if released == nil {
			p.goOn(n.id)
			continue
		}
		go func() {
			<-released
			p.goOn(n.id)
		}()
	}
}

// mustWait returns the channel that a read waits for; nil: it need not.
func (p *Program) mustWait(kind Kind) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	released := p.held[kind]
	if released != nil {
		p.waiting[kind]++
	}
	return released
}

// goOn has a system call begin. The process may have been killed meanwhile.
func (p *Program) goOn(id uint64) {
	_ = p.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}))
}

func (p *Program) ioctl(request uint, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(p.questions), uintptr(request), uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}

// kindOf returns what a system call reads; empty: nothing of interest.
func kindOf(n *notification) Kind {
	switch n.call {
	case unix.SYS_GETDENTS64:
		path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, n.args[0]))
		if path == names {
			return Namespaces
		}
	case unix.SYS_SENDTO:
		message := make([]byte, min(n.args[2], 64<<10))
		local := []unix.Iovec{{Base: unsafe.SliceData(message), Len: uint64(len(message))}}
		remote := []unix.RemoteIovec{{Base: uintptr(n.args[1]), Len: len(message)}}
		if got, err := unix.ProcessVMReadv(int(n.pid), local, remote, 0); err == nil {
			return kindOfRequests(message[:got])
		}
	}
	return ""
}

// kindOfRequests returns the kind of the first list that is asked for.
func kindOfRequests(message []byte) Kind {
	all, err := syscall.ParseNetlinkMessage(message)
	if err != nil {
		return ""
	}
	for _, one := range all {
		if kind := kinds[one.Header.Type]; kind != "" && one.Header.Flags&unix.NLM_F_DUMP == unix.NLM_F_DUMP {
			return kind
		}
	}
	return ""
}

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// maxBatch is the maximum number of changes in one datagram. If all fail, their answers
// still fit into the socket's buffer.
const maxBatch = 64

// A pipe sends changes to the kernel, which makes them in order. Changes that arrive while
// others are in flight wait, and then share one datagram. The goroutine of the first waiting
// request sends it for all, so no goroutine is started. Safe for use by any goroutine.
//
// The kernel answers each failed change with its errno. Only the last change of a datagram
// asks for an acknowledgement. When it comes, the others without an errno have succeeded.
type pipe struct {
	socket int

	mu      sync.Mutex // guards busy and waiting
	busy    bool       // a goroutine is sending
	waiting []*request

	// Owned by the goroutine that is sending.
	seq    uint32
	batch  []*change
	out    []byte
	answer [64 << 10]byte
}

// A request is what one goroutine waits for: at most maxBatch changes, which share a datagram.
type request struct {
	changes []change
	turn    chan bool // true: send the waiting requests; false: the changes have their results
}

// A change is a netlink message and its result.
type change struct {
	message  []byte
	err      error
	answered bool // err is the kernel's answer
}

// openPipe opens a pipe in the namespace of the calling thread.
func openPipe() (*pipe, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	// Request short acknowledgements with the kernel's error message. Kernels without
	// these options work as well.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
	err = errors.Join(err, unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &pipe{socket: fd}, nil
}

// close closes the socket; requests that wait for an answer fail.
func (p *pipe) close() error { return unix.Close(p.socket) }

// port returns the netlink port of the socket, which notifications of its changes name.
func (p *pipe) port() (uint32, error) {
	at, err := unix.Getsockname(p.socket)
	if err != nil {
		return 0, err
	}
	return at.(*unix.SockaddrNetlink).Pid, nil
}

// do sends a message of newMessage and waits for its result.
func (p *pipe) do(message []byte) error {
	r := &request{changes: []change{{message: message}}}
	p.request(r)
	return r.changes[0].err
}

// doAll is do for many messages, and returns a result for each.
func (p *pipe) doAll(messages [][]byte) []error {
	errs := make([]error, 0, len(messages))
	for some := range slices.Chunk(messages, maxBatch) {
		r := &request{changes: make([]change, len(some))}
		for i, message := range some {
			r.changes[i].message = message
		}
		p.request(r)
		for i := range r.changes {
			errs = append(errs, r.changes[i].err)
		}
	}
	return errs
}

// request waits until the changes of r have their results.
func (p *pipe) request(r *request) {
	r.turn = make(chan bool, 1)
	p.mu.Lock()
	p.waiting = append(p.waiting, r)
	carry := !p.busy
	p.busy = true
	p.mu.Unlock()
	if carry || <-r.turn {
		p.carry()
	}
}

// carry sends the waiting requests, its own first, and then passes the turn on. It first lets
// other goroutines queue theirs, so that many share a datagram.
func (p *pipe) carry() {
	runtime.Gosched()
	p.mu.Lock()
	n, changes := 0, 0
	for n < len(p.waiting) && changes+len(p.waiting[n].changes) <= maxBatch {
		changes += len(p.waiting[n].changes)
		n++
	}
	sent := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	p.mu.Unlock()
	p.batch = p.batch[:0]
	for _, r := range sent {
		for i := range r.changes {
			p.batch = append(p.batch, &r.changes[i])
		}
	}
	p.exchange(p.batch)
	clear(p.batch)
	for _, r := range sent[1:] {
		r.turn <- false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = len(p.waiting) > 0
	if p.busy {
		p.waiting[0].turn <- true
	}
}

// exchange sends a batch and waits for the acknowledgement of the last change. If it does
// not come, the changes without an answer fail: nobody knows whether the kernel made them.
func (p *pipe) exchange(batch []*change) {
	first, last := p.seq+1, batch[len(batch)-1]
	p.seq += uint32(len(batch))
	p.out = p.out[:0]
	binary.NativeEndian.PutUint16(last.message[6:], binary.NativeEndian.Uint16(last.message[6:])|unix.NLM_F_ACK)
	for i, c := range batch {
		binary.NativeEndian.PutUint32(c.message[8:], first+uint32(i))
		p.out = append(p.out, c.message...)
	}
	err := unix.Sendto(p.socket, p.out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		err = fmt.Errorf("sending to the kernel: %w", err)
	}
	for err == nil && !last.answered {
		err = p.receive(0, batch, first)
	}
	if errors.Is(err, unix.ENOBUFS) {
		// The kernel sends no more answers before all those in the buffer are read.
		for p.receive(unix.MSG_DONTWAIT, batch, first) == nil {
		}
	}
	for _, c := range batch {
		if err != nil && !c.answered {
			c.err = err
		}
	}
}

// receive reads one datagram and stores the answers in the changes of the batch. first is
// the number of the first change. Answers to earlier batches are ignored.
func (p *pipe) receive(flags int, batch []*change, first uint32) error {
	n, _, err := unix.Recvfrom(p.socket, p.answer[:], flags)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("waiting for the kernel: %w", err)
	}
	for seq, err := range answers(p.answer[:n]) {
		if i := seq - first; i < uint32(len(batch)) {
			batch[i].err, batch[i].answered = err, true
		}
	}
	return nil
}

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// maxBatch is the maximum number of changes in one datagram. If all fail, their answers
// still fit into the socket's buffer.
const maxBatch = 64

// A pipe sends changes to the kernel, which makes them in order. Changes that arrive while
// others are in flight wait, and then share one datagram. The goroutine of the first waiting
// change sends it for all, so no goroutine is started. Safe for use by any goroutine.
//
// The kernel answers each failed change with its errno. Only the last change of a datagram
// asks for an acknowledgement. When it comes, the others without an errno have succeeded.
type pipe struct {
	socket int

	mu      sync.Mutex // guards busy and waiting
	busy    bool       // a goroutine is sending
	waiting []*change

	// Owned by the goroutine that is sending.
	seq    uint32
	out    []byte
	answer [64 << 10]byte
}

// A change is a netlink message and its result.
type change struct {
	message  []byte
	err      error
	answered bool      // err is the kernel's answer
	turn     chan bool // true: send the waiting changes; false: err is the result
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

// do sends a message of newMessage and waits for its result.
func (p *pipe) do(message []byte) error {
	c := &change{message: message, turn: make(chan bool, 1)}
	p.mu.Lock()
	p.waiting = append(p.waiting, c)
	carry := !p.busy
	p.busy = true
	p.mu.Unlock()
	if carry || <-c.turn {
		p.carry()
	}
	return c.err
}

// carry sends the waiting changes, its own first, and then passes the turn on. It first lets
// other goroutines queue their changes, so that many share a datagram.
func (p *pipe) carry() {
	runtime.Gosched()
	p.mu.Lock()
	n := min(len(p.waiting), maxBatch)
	batch := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	p.mu.Unlock()
	p.exchange(batch)
	for _, c := range batch[1:] {
		c.turn <- false
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

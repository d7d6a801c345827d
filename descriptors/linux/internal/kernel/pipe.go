package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// maxBatch is the maximum number of changes in one datagram. Their acknowledgements fit
// into the socket's buffer many times over.
const maxBatch = 64

// A pipe sends changes to the kernel, which acknowledges each with an errno. Changes that
// arrive while others are in flight wait, and then share one datagram. The goroutine of
// the first waiting change sends it for all, so no goroutine is started. Safe for use by
// any goroutine.
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
	message []byte
	err     error
	turn    chan bool // true: send the waiting changes; false: err is the result
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

// carry sends the waiting changes, its own first, and then passes the turn on.
func (p *pipe) carry() {
	p.mu.Lock()
	n := min(len(p.waiting), maxBatch)
	batch := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	p.mu.Unlock()
	if err := p.exchange(batch); err != nil {
		for _, c := range batch {
			c.err = err
		}
	}
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

// exchange sends a batch and waits for all acknowledgements.
func (p *pipe) exchange(batch []*change) error {
	first := p.seq + 1
	p.seq += uint32(len(batch))
	p.out = p.out[:0]
	for i, c := range batch {
		binary.NativeEndian.PutUint32(c.message[8:], first+uint32(i))
		p.out = append(p.out, c.message...)
	}
	if err := unix.Sendto(p.socket, p.out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("sending to the kernel: %w", err)
	}
	for left := len(batch); left > 0; {
		n, _, err := unix.Recvfrom(p.socket, p.answer[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for the kernel: %w", err)
		}
		for seq, err := range answers(p.answer[:n]) {
			if i := seq - first; i < uint32(len(batch)) {
				batch[i].err = err
				left--
			}
		}
	}
	return nil
}

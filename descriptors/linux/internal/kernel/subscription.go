package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// room is the size of a socket buffer for notifications, in bytes.
const room = 4 << 20

// A subscription reads the notifications of one namespace from one netlink socket, which it owns.
type subscription[E any] struct {
	socket *nl.NetlinkSocket
	of     string // the notifications, for errors
	// parse reports false for messages that do not matter.
	parse func(syscall.NetlinkMessage) (E, bool)
}

// subscribe opens a subscription inside the namespace of k: to groups of a netlink protocol
// (NETLINK_ROUTE, NETLINK_NETFILTER).
func subscribe[E any](k *real, of string, parse func(syscall.NetlinkMessage) (E, bool), protocol int, groups ...uint) (*subscription[E], error) {
	var s *nl.NetlinkSocket
	err := within(k.file, func() (err error) {
		s, err = nl.Subscribe(protocol, groups...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", of, err)
	}
	// A size above the system's limit needs CAP_NET_ADMIN in the initial user namespace.
	// Without it the limit applies, and an overflow occurs sooner.
	err = s.SetReceiveBufferSize(room, true)
	if errors.Is(err, unix.EPERM) {
		err = s.SetReceiveBufferSize(room, false)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("setting the buffer size for %s: %w", of, err)
	}
	return &subscription[E]{s, of, parse}, nil
}

// without has the kernel leave out the notifications of changes that the socket with this port
// requested. They are most of the notifications while an agent starts: reading them costs as much
// time as the changes, and they can fill the buffer, which hides those of other programs.
func (s *subscription[E]) without(port uint32) error {
	const from = 12 // nlmsg_pid in nlmsghdr; the filter loads it in network byte order
	code, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: from, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, port)), SkipFalse: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: math.MaxUint32}, // all bytes
	})
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(code))
	for i, c := range code {
		program[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	err = unix.SetsockoptSockFprog(s.socket.GetFd(), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	return about(err, "filtering %s", s.of)
}

// Close ends Next.
func (s *subscription[E]) Close() error { s.socket.Close(); return nil }

// Next returns the next events. ErrLost says that the kernel has dropped some; messages of
// other processes are ignored, since anybody may send to a netlink socket.
func (s *subscription[E]) Next() ([]E, error) {
	for {
		msgs, from, err := s.socket.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			return nil, ErrLost
		case err != nil:
			return nil, fmt.Errorf("receiving %s: %w", s.of, err)
		case from.Pid != nl.PidKernel:
			continue
		}
		var out []E
		for _, m := range msgs {
			if e, ok := s.parse(m); ok {
				out = append(out, e)
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
}

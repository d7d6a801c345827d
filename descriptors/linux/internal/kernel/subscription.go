package kernel

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
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

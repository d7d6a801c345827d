package kernel

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrLost says that the kernel had more notifications than room for them: what
// is known has to be read again. The notifications go on.
var ErrLost = errors.New("notifications from the kernel were lost")

// Events are the notifications of one namespace, in the order of the changes.
type Events interface {
	// Next waits for some. It fails with ErrLost, and with another error once
	// the notifications have ended, which Close makes them.
	Next() ([]Event, error)
	Close() error
}

// An Event is one change: what there is now, or what is gone.
type Event struct {
	Gone bool
	What any // Link, Addr, Route (unicast) or Neighbour (permanent)
}

// room is how many bytes of notifications the kernel may keep for us.
const room = 4 << 20

// Subscribe implements Kernel.
func (k *real) Subscribe() (Events, error) {
	var s *nl.NetlinkSocket
	err := within(k.file, func() (err error) {
		s, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
			unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEIGH)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("subscribing to notifications: %w", err)
	}
	// More than the system's limit takes rights that root of a user namespace has
	// not; then it is what the limit allows, and an overflow is noticed sooner.
	err = s.SetReceiveBufferSize(room, true)
	if errors.Is(err, unix.EPERM) {
		err = s.SetReceiveBufferSize(room, false)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("making room for notifications: %w", err)
	}
	return events{s}, nil
}

type events struct{ socket *nl.NetlinkSocket }

func (e events) Close() error { e.socket.Close(); return nil }

func (e events) Next() ([]Event, error) {
	for {
		msgs, from, err := e.socket.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			return nil, ErrLost
		case err != nil:
			return nil, fmt.Errorf("receiving notifications: %w", err)
		case from.Pid != nl.PidKernel:
			continue
		}
		if out := parse(msgs); len(out) > 0 {
			return out, nil
		}
	}
}

func parse(msgs []syscall.NetlinkMessage) (out []Event) {
	for _, m := range msgs {
		if e, ok := parseOne(m); ok {
			out = append(out, e)
		}
	}
	return out
}

func gone(kind uint16) bool {
	switch kind {
	case unix.RTM_DELLINK, unix.RTM_DELADDR, unix.RTM_DELROUTE, unix.RTM_DELNEIGH:
		return true
	}
	return false
}

// parseOne reads a message of which the descriptors want to know. A neighbour of
// ours that is permanent no more counts as gone.
func parseOne(m syscall.NetlinkMessage) (Event, bool) {
	e, ok := Event{Gone: gone(m.Header.Type)}, false
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		e.What, ok = parseLink(m)
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		e.What, ok = parseAddr(m.Data)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		e.What, ok = parseRoute(m.Data)
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		n, permanent, valid := parseNeighbour(m.Data)
		ok = valid && (permanent || e.Gone || n.Protocol == Protocol)
		e.Gone, e.What = e.Gone || !permanent, n
	}
	return e, ok
}

// parseLink reads an ifinfomsg. Those of bridge ports are of another family and
// concern the port, not the link.
func parseLink(m syscall.NetlinkMessage) (any, bool) {
	if len(m.Data) < unix.SizeofIfInfomsg || m.Data[0] != unix.AF_UNSPEC {
		return nil, false
	}
	found, err := netlink.LinkDeserialize((*unix.NlMsghdr)(&m.Header), m.Data)
	if err != nil {
		return nil, false
	}
	return linkOf(found), true
}

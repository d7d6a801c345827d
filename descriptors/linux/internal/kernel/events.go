package kernel

import (
	"errors"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrLost reports that the socket buffer overflowed and notifications were lost. The
// caller must read the state again. The subscription continues.
var ErrLost = errors.New("notifications from the kernel were lost")

// Events is a subscription to the notifications of one namespace, in the order of changes.
type Events interface {
	// Next waits for notifications. It returns ErrLost after an overflow, and another
	// error when the subscription has ended. Close ends it.
	Next() ([]Event, error)
	Close() error
}

// An Event is one change: a new state, or a removal.
type Event struct {
	Gone bool
	// Moved says that a link which is gone exists in another namespace: the kernel names it
	// (IFLA_NEW_NETNSID and IFLA_NEW_IFINDEX, rtnetlink(7)).
	Moved bool
	// Features says that settings of a link have changed which the message does not tell, such as checksum
	// offloading (IFLA_EVENT_FEATURES).
	Features bool
	// Replaces says that a new route has taken the place of another one, which has no event of its own
	// (NLM_F_REPLACE). Behind says that it was added behind those in its place (NLM_F_APPEND).
	Replaces, Behind bool
	What             any // Link, Addr, Route, Neighbour (permanent) or VRFRule
}

// Subscribe implements Kernel.
func (k *real) Subscribe() (Events, error) {
	port, err := k.changes.port()
	if err != nil {
		return nil, err
	}
	s, err := subscribe(k, "notifications", parseOne, unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE)
	if err != nil {
		return nil, err
	}
	if err := s.without(port); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// gone reports whether the message announces a removal.
func gone(kind uint16) bool {
	switch kind {
	case unix.RTM_DELLINK, unix.RTM_DELADDR, unix.RTM_DELROUTE, unix.RTM_DELNEIGH, unix.RTM_DELRULE:
		return true
	}
	return false
}

// parseOne parses a message of a kind that the descriptors use. A neighbour of the agent
// that is not permanent any more counts as gone.
func parseOne(m syscall.NetlinkMessage) (Event, bool) {
	e, ok := Event{Gone: gone(m.Header.Type)}, false
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		e.What, ok = parseLink(m)
		if ok {
			e.Moved, e.Features = besides(m.Data, e.Gone)
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		e.What, ok = parseAddr(m.Data)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		e.What, ok = parseRoute(m.Data)
		e.Replaces = !e.Gone && m.Header.Flags&unix.NLM_F_REPLACE != 0
		e.Behind = !e.Gone && m.Header.Flags&unix.NLM_F_APPEND != 0
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		n, permanent, valid := parseNeighbour(m.Data)
		ok = valid && (permanent || e.Gone || n.Protocol == Protocol)
		e.Gone, e.What = e.Gone || !permanent, n
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		e.What, ok = VRFRule{}, ofVRFs(m.Data)
	}
	return e, ok
}

// besides returns what the message about a link, a complete ifinfomsg, says besides its state; see Event.
func besides(m []byte, gone bool) (moved, features bool) {
	for kind, value := range attributes(m[unix.SizeofIfInfomsg:]) {
		switch kind {
		case unix.IFLA_NEW_NETNSID, unix.IFLA_NEW_IFINDEX:
			moved = gone
		case unix.IFLA_EVENT:
			features = number(value) == unix.IFLA_EVENT_FEATURES
		}
	}
	return moved, features
}

// parseLink parses an ifinfomsg. Messages of bridge ports have another family and describe
// the port, not the link.
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

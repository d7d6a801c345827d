package kernel

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// protocolAttr is NDA_PROTOCOL of linux/neighbour.h, the creator of an entry. The netlink
// library does not support it, so this package has its own requests for neighbours.
const protocolAttr = 12

// Neighbours implements Kernel.
func (k *real) Neighbours() ([]Neighbour, error) {
	found, err := dump(func() ([]Neighbour, error) { return k.listNeighbours() })
	return found, about(err, "listing neighbours")
}

// listNeighbours returns the permanent neighbours: others come and go with the traffic.
func (k *real) listNeighbours() (out []Neighbour, err error) {
	request, err := k.request(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
	if err != nil {
		return nil, err
	}
	request.AddData(&netlink.Ndmsg{Family: unix.AF_UNSPEC})
	msgs, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		if n, permanent, ok := parseNeighbour(m); ok && permanent {
			out = append(out, n)
		}
	}
	return out, nil
}

// AddNeighbour implements Kernel.
func (k *real) AddNeighbour(n Neighbour, replace bool) error {
	flags := uint16(unix.NLM_F_CREATE | unix.NLM_F_EXCL)
	if replace {
		flags = unix.NLM_F_CREATE | unix.NLM_F_REPLACE
	}
	err := k.changes.do(neighbourMessage(unix.RTM_NEWNEIGH, flags, n))
	return about(err, "adding neighbour %v of %v", n.IP, k.named(n.Link))
}

// DelNeighbour implements Kernel.
func (k *real) DelNeighbour(n Neighbour) error {
	return about(k.changes.do(neighbourMessage(unix.RTM_DELNEIGH, 0, n)), "removing neighbour %v of %v", n.IP, k.named(n.Link))
}

// request returns a request on a socket inside the namespace.
func (k *real) request(kind, flags int) (*nl.NetlinkRequest, error) {
	k.lazy.Lock()
	defer k.lazy.Unlock()
	if k.neigh == nil {
		var socket *nl.NetlinkSocket
		err := within(k.file, func() (err error) {
			socket, err = nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("opening a netlink socket: %w", err)
		}
		k.neigh = &nl.SocketHandle{Socket: socket}
	}
	return &nl.NetlinkRequest{
		NlMsghdr: unix.NlMsghdr{Len: unix.SizeofNlMsghdr, Type: uint16(kind), Flags: unix.NLM_F_REQUEST | uint16(flags)},
		Sockets:  map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: k.neigh},
	}, nil
}

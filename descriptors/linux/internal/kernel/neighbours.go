package kernel

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// protocolAttr is NDA_PROTOCOL of linux/neighbour.h: who made the entry. The
// library does not know it, so neighbours have requests of their own.
const protocolAttr = 12

// Neighbours implements Kernel.
func (k *real) Neighbours() ([]Neighbour, error) {
	found, err := dump(func() ([]Neighbour, error) { return k.listNeighbours() })
	return found, about(err, "listing neighbours")
}

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
	flags := unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL
	if replace {
		flags = unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_REPLACE
	}
	return about(k.changeNeighbour(unix.RTM_NEWNEIGH, flags, n), "adding neighbour %v of link %d", n.IP, n.Link)
}

// DelNeighbour implements Kernel.
func (k *real) DelNeighbour(n Neighbour) error {
	return about(k.changeNeighbour(unix.RTM_DELNEIGH, unix.NLM_F_ACK, n), "removing neighbour %v of link %d", n.IP, n.Link)
}

func (k *real) changeNeighbour(kind, flags int, n Neighbour) error {
	request, err := k.request(kind, flags)
	if err != nil {
		return err
	}
	family := uint8(unix.AF_INET)
	if n.IP.Is6() {
		family = unix.AF_INET6
	}
	request.AddData(&netlink.Ndmsg{Family: family, Index: uint32(n.Link), State: unix.NUD_PERMANENT})
	request.AddData(nl.NewRtAttr(netlink.NDA_DST, n.IP.AsSlice()))
	if kind == unix.RTM_NEWNEIGH {
		request.AddData(nl.NewRtAttr(netlink.NDA_LLADDR, n.MAC))
		request.AddData(nl.NewRtAttr(protocolAttr, nl.Uint8Attr(n.Protocol)))
	}
	_, err = request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// request is one on a socket that stays in the namespace.
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

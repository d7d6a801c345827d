package kernel

import (
	"encoding/binary"
	"iter"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// parseAddr parses an ifaddrmsg of rtnetlink(7) and its attributes. IFA_LOCAL wins over IFA_ADDRESS, which is
// the address of the peer on point-to-point links. The prefix length is then that of the peer.
func parseAddr(m []byte) (Addr, bool) {
	if len(m) < unix.SizeofIfAddrmsg {
		return Addr{}, false
	}
	var local, address netip.Addr
	a, flags := Addr{Link: int(number(m[4:]))}, addrFlags(m)
	for kind, value := range attributes(m[unix.SizeofIfAddrmsg:]) {
		switch kind {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(value)
		case unix.IFA_ADDRESS:
			address, _ = netip.AddrFromSlice(value)
		case ifaProto:
			a.Protocol = append(value, 0)[0]
		}
	}
	if local.IsValid() && address != local {
		a.Peer = address
	} else {
		local = address
	}
	a.Prefix = netip.PrefixFrom(local, int(m[1]))
	a.Temporary = flags&unix.IFA_F_PERMANENT == 0
	a.Duplicate = flags&unix.IFA_F_DADFAILED != 0
	a.Tentative = flags&unix.IFA_F_TENTATIVE != 0
	return a, a.Prefix.IsValid()
}

// addrFlags returns the flags of an address, IFA_F_*. Its header has room for eight of them.
func addrFlags(m []byte) uint32 {
	for kind, value := range attributes(m[unix.SizeofIfAddrmsg:]) {
		if kind == unix.IFA_FLAGS {
			return number(value)
		}
	}
	return uint32(m[2])
}

// parseNeighbour parses an ndmsg and its attributes.
func parseNeighbour(m []byte) (n Neighbour, permanent, ok bool) {
	if len(m) < unix.SizeofNdMsg {
		return Neighbour{}, false, false
	}
	n.Link = int(number(m[4:]))
	permanent = binary.NativeEndian.Uint16(m[8:])&unix.NUD_PERMANENT != 0
	for kind, value := range attributes(m[unix.SizeofNdMsg:]) {
		switch kind {
		case netlink.NDA_DST:
			n.IP, _ = netip.AddrFromSlice(value)
		case netlink.NDA_LLADDR:
			n.MAC = value
		case protocolAttr:
			n.Protocol = append(value, 0)[0]
		}
	}
	return n, permanent, n.IP.IsValid()
}

// attributes yields the type and value of each complete rtattr in b.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofRtAttr {
			length := int(binary.NativeEndian.Uint16(b))
			if length < unix.SizeofRtAttr || length > len(b) {
				return
			}
			kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
			if !yield(kind, b[unix.SizeofRtAttr:length:length]) {
				return
			}
			b = b[min(len(b), (length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
		}
	}
}

// number returns the first 32 bits of b, or 0 if b is shorter.
func number(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

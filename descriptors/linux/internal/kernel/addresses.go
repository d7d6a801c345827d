package kernel

import (
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ifaProto is IFA_PROTO of linux/if_addr.h, the creator of an address. Kernels before 5.18 ignore it.
// The netlink library does not support it, so this package has its own requests for addresses.
const ifaProto = 11

// Addrs implements Kernel.
func (k *real) Addrs(index int) ([]Addr, error) {
	found, err := dump(func() ([]listedAddr, error) { return k.listAddrs(index) })
	var out []Addr
	for _, a := range found {
		out = append(out, a.Addr)
	}
	return out, about(err, "listing addresses")
}

// A listedAddr is an address with what the kernel tells besides.
type listedAddr struct {
	Addr
	flags   uint32 // IFA_F_*
	message []byte // all of it: the ifaddrmsg
}

// listAddrs returns the addresses of one link, or of all (0), in the form that events have.
func (k *real) listAddrs(index int) (out []listedAddr, err error) {
	request, err := k.request(unix.RTM_GETADDR, unix.NLM_F_DUMP)
	if err != nil {
		return nil, err
	}
	request.AddData(nl.NewIfAddrmsg(unix.AF_UNSPEC))
	msgs, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWADDR)
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		if a, ok := parseAddr(m); ok && (index == 0 || a.Link == index) {
			out = append(out, listedAddr{a, addrFlags(m), m})
		}
	}
	return out, nil
}

// AddAddr implements Kernel.
func (k *real) AddAddr(a Addr) error {
	err := k.changeAddr(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, a)
	return about(err, "giving %v the address %v", k.named(a.Link), a.Prefix)
}

// DelAddr implements Kernel.
func (k *real) DelAddr(a Addr) error {
	err := k.changeAddr(unix.RTM_DELADDR, unix.NLM_F_ACK, a)
	return about(err, "taking the address %v from %v", a.Prefix, k.named(a.Link))
}

// changeAddr sends an ifaddrmsg of rtnetlink(7). The agent's own socket for changes is not used: those who
// announce addresses need the events.
func (k *real) changeAddr(kind, flags int, a Addr) error {
	request, err := k.request(kind, flags)
	if err != nil {
		return err
	}
	m := nl.NewIfAddrmsg(int(family(a.Prefix.Addr())))
	m.Index, m.Prefixlen = uint32(a.Link), uint8(a.Prefix.Bits())
	request.AddData(m)
	ip := a.Prefix.Addr().AsSlice()
	request.AddData(nl.NewRtAttr(unix.IFA_LOCAL, ip))
	request.AddData(nl.NewRtAttr(unix.IFA_ADDRESS, ip))
	if kind == unix.RTM_NEWADDR {
		if last, ok := broadcast(a.Prefix); ok {
			request.AddData(nl.NewRtAttr(unix.IFA_BROADCAST, last.AsSlice()))
		}
		request.AddData(nl.NewRtAttr(ifaProto, []byte{Protocol}))
	}
	_, err = request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// broadcast returns the last address of an IPv4 subnet that has room for one (RFC 3021).
func broadcast(p netip.Prefix) (netip.Addr, bool) {
	if !p.Addr().Is4() || p.Bits() > 30 {
		return netip.Addr{}, false
	}
	ip := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		ip[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(ip), true
}

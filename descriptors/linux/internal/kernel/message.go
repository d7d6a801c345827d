package kernel

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// newMessage returns the start of a netlink request: the nlmsghdr, and body. The pipe sets
// the sequence number, and asks for acknowledgements.
func newMessage(kind uint16, flags uint16, body ...byte) []byte {
	m := make([]byte, unix.SizeofNlMsghdr, 96)
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|flags)
	return append(m, body...)
}

// attribute appends an rtattr, padded to RTA_ALIGNTO.
func attribute(m []byte, kind uint16, value ...byte) []byte {
	m = binary.NativeEndian.AppendUint16(m, uint16(unix.SizeofRtAttr+len(value)))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = append(m, value...)
	for len(m)%unix.RTA_ALIGNTO != 0 {
		m = append(m, 0)
	}
	return m
}

// attribute32 appends a 32-bit attribute, in the byte order of the machine.
func attribute32(m []byte, kind uint16, value uint32) []byte {
	return attribute(m, kind, binary.NativeEndian.AppendUint32(nil, value)...)
}

// finish writes the length into the header.
func finish(m []byte) []byte {
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	return m
}

// family returns the address family of the kernel.
func family(ip netip.Addr) byte {
	if ip.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// neighbourMessage returns an ndmsg of rtnetlink(7).
func neighbourMessage(kind, flags uint16, n Neighbour) []byte {
	m := newMessage(kind, flags, family(n.IP), 0, 0, 0)
	m = binary.NativeEndian.AppendUint32(m, uint32(n.Link))
	m = binary.NativeEndian.AppendUint16(m, unix.NUD_PERMANENT)
	m = append(m, 0, 0) // flags, type
	m = attribute(m, netlink.NDA_DST, n.IP.AsSlice()...)
	if kind == unix.RTM_NEWNEIGH {
		m = attribute(m, netlink.NDA_LLADDR, n.MAC...)
		m = attribute(m, protocolAttr, n.Protocol)
	}
	return finish(m)
}

// answers yields the sequence number and the result of each acknowledgement in b. The
// result is nil, or the errno with the kernel's message.
func answers(b []byte) iter.Seq2[uint32, error] {
	return func(yield func(uint32, error) bool) {
		for len(b) >= unix.SizeofNlMsghdr {
			length := int(number(b))
			if length < unix.SizeofNlMsghdr || length > len(b) {
				return
			}
			kind, flags := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:])
			if kind == unix.NLMSG_ERROR && !yield(number(b[8:]), answer(b[unix.SizeofNlMsghdr:length], flags)) {
				return
			}
			b = b[min(len(b), (length+3)&^3):]
		}
	}
}

// answer parses an nlmsgerr: an errno, the header of the request, and attributes if flags
// announce them.
func answer(b []byte, flags uint16) error {
	errno := unix.Errno(-int32(number(b)))
	if errno == 0 {
		return nil
	}
	if flags&unix.NLM_F_ACK_TLVS == 0 || flags&unix.NLM_F_CAPPED == 0 || len(b) < 4+unix.SizeofNlMsghdr {
		return errno
	}
	for kind, value := range attributes(b[4+unix.SizeofNlMsghdr:]) {
		if kind == unix.NLMSGERR_ATTR_MSG {
			return fmt.Errorf("%s: %w", strings.TrimRight(string(value), "\x00"), errno)
		}
	}
	return errno
}

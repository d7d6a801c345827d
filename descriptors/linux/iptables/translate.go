package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// errUnknown reports a match or target that only iptables itself knows.
var errUnknown = errors.New("this host has no iptables, and without it only the common matches and targets are known")

// A translator turns the words of a rule into expressions of nftables. It is reused for all
// rules of a batch, since building known for each rule costs more than the rule itself.
type translator struct {
	ipv6 bool
	set  func(ports [][]byte) (*expr.Lookup, error) // adds an anonymous set of ports

	out     []expr.Any
	target  string
	goTo    bool              // the target is a chain that does not return here
	options map[string]string // of the target
	known   map[string]func(op expr.CmpOp, value string) error
}

// newTranslator returns a translator for any number of rules.
func newTranslator(ipv6 bool, set func(ports [][]byte) (*expr.Lookup, error)) *translator {
	t := &translator{ipv6: ipv6, set: set, options: map[string]string{}}
	t.known = t.matches()
	return t
}

// translate translates a rule.
func (t *translator) translate(all []string) ([]expr.Any, error) {
	t.out, t.target, t.goTo = nil, "", false
	clear(t.options)
	for i := 0; i < len(all); {
		op := expr.CmpOpEq
		if all[i] == "!" {
			op = expr.CmpOpNeq
			i++
		}
		if i+1 >= len(all) {
			return nil, fmt.Errorf("%s: expected a value: %w", strings.Join(all[min(i, len(all)):], " "), errUnknown)
		}
		if err := t.option(op, all[i], all[i+1]); err != nil {
			return nil, fmt.Errorf("%s %s: %w", all[i], all[i+1], err)
		}
		i += 2
	}
	t.add(&expr.Counter{})
	err := t.finish()
	return t.out, err
}

// add appends expressions of the current rule. The kernel evaluates them in order and stops at
// the first comparison that fails.
func (t *translator) add(all ...expr.Any) { t.out = append(t.out, all...) }

// matches returns the function that translates each match.
func (t *translator) matches() map[string]func(op expr.CmpOp, value string) error {
	address := func(offset uint32) func(expr.CmpOp, string) error {
		return func(op expr.CmpOp, value string) error { return t.address(op, value, offset) }
	}
	link := func(key expr.MetaKey) func(expr.CmpOp, string) error {
		return func(op expr.CmpOp, value string) error { return t.link(op, key, value) }
	}
	// The transport header begins with the source port, of two bytes, and the destination port.
	port := func(offset uint32, match func(expr.CmpOp, string, uint32) error) func(expr.CmpOp, string) error {
		return func(op expr.CmpOp, value string) error { return match(op, value, offset) }
	}
	from, to := address(pick(t.ipv6, 8, 12)), address(pick(t.ipv6, 24, 16)) // in the header of IPv6, and of IPv4
	return map[string]func(op expr.CmpOp, value string) error{
		"-s": from, "--source": from, "--src": from, "-d": to, "--destination": to, "--dst": to,
		"-i": link(expr.MetaKeyIIFNAME), "--in-interface": link(expr.MetaKeyIIFNAME),
		"-o": link(expr.MetaKeyOIFNAME), "--out-interface": link(expr.MetaKeyOIFNAME),
		"-p": t.protocol, "--protocol": t.protocol,
		"--sport": port(0, t.ports), "--source-port": port(0, t.ports), "--dport": port(2, t.ports), "--destination-port": port(2, t.ports),
		"--sports": port(0, t.portList), "--source-ports": port(0, t.portList),
		"--dports": port(2, t.portList), "--destination-ports": port(2, t.portList),
		"--ctstate": t.states, "--state": t.states, "--mark": t.mark, "--icmp-type": t.icmp, "--icmpv6-type": t.icmp,
	}
}

// option translates a match, or notes the target or one of its options.
func (t *translator) option(op expr.CmpOp, name, value string) error {
	if match := t.known[name]; match != nil {
		return match(op, value)
	}
	if op != expr.CmpOpEq {
		return errUnknown
	}
	switch name {
	case "-m", "--match":
		switch value {
		case "tcp", "udp", "sctp", "icmp", "icmp6", "icmpv6", "comment", "conntrack", "state", "mark", "multiport":
			return nil // its options follow
		}
		return errUnknown
	case "--comment":
		return nil // the comment of the rule has it
	case "-j", "--jump":
		t.target = value
	case "-g", "--goto":
		t.target, t.goTo = value, true
	case "--to-source", "--to-destination", "--to-ports", "--reject-with", "--log-prefix", "--set-mark", "--queue-num":
		t.options[name] = value
	default:
		return errUnknown
	}
	return nil
}

// pick returns one of two numbers.
func pick(second bool, two, one uint32) uint32 {
	if second {
		return two
	}
	return one
}

// address matches an address of the packet's header at an offset in bytes. An address of the
// other IP version is an error, since it could never match.
func (t *translator) address(op expr.CmpOp, value string, offset uint32) error {
	p, err := netip.ParsePrefix(value)
	if err != nil {
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return errUnknown // a name, a mask or a list
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p.Addr().Is6() != t.ipv6 {
		return errors.New("expected an address of the chain's protocol")
	}
	p = p.Masked()
	size := p.Addr().BitLen() / 8
	t.add(&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(size)})
	if p.Bits() < p.Addr().BitLen() {
		mask := make([]byte, size)
		for i := range p.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		t.add(&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(size), Mask: mask, Xor: make([]byte, size)})
	}
	t.add(&expr.Cmp{Op: op, Register: 1, Data: p.Addr().AsSlice()})
	return nil
}

// link matches the name of an interface. A "+" at its end stands for any rest.
func (t *translator) link(op expr.CmpOp, key expr.MetaKey, value string) error {
	name, open := strings.CutSuffix(value, "+")
	if len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("expected at most %d bytes", unix.IFNAMSIZ-1)
	}
	data := []byte(name)
	if !open {
		data = make([]byte, unix.IFNAMSIZ)
		copy(data, name)
	}
	if len(data) == 0 {
		return nil // "+": any interface
	}
	t.add(&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: data})
	return nil
}

// protocol matches the protocol above IP.
func (t *translator) protocol(op expr.CmpOp, value string) error {
	numbers := map[string]byte{
		"icmp": unix.IPPROTO_ICMP, "tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "sctp": unix.IPPROTO_SCTP, "gre": unix.IPPROTO_GRE,
		"esp": unix.IPPROTO_ESP, "ah": unix.IPPROTO_AH, "ipv6-icmp": unix.IPPROTO_ICMPV6, "icmpv6": unix.IPPROTO_ICMPV6,
	}
	number, known := numbers[value]
	if !known {
		n, err := strconv.ParseUint(value, 10, 8)
		if value == "all" || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return errUnknown
		}
		number = byte(n)
	}
	t.add(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: []byte{number}})
	return nil
}

// port returns a port in network order.
func port(text string) ([]byte, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, errUnknown // the name of a service
	}
	return binary.BigEndian.AppendUint16(nil, uint16(n)), nil
}

// loadPort loads a port of the transport header.
func (t *translator) loadPort(offset uint32) {
	t.add(&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2})
}

// ports matches a port, or a range A:B.
func (t *translator) ports(op expr.CmpOp, value string, offset uint32) error {
	first, last, ranged := strings.Cut(value, ":")
	if ranged && first == "" {
		first = "0"
	}
	if ranged && last == "" {
		last = "65535"
	}
	from, err := port(first)
	if err != nil {
		return err
	}
	t.loadPort(offset)
	if !ranged {
		t.add(&expr.Cmp{Op: op, Register: 1, Data: from})
		return nil
	}
	to, err := port(last)
	t.add(&expr.Range{Op: op, Register: 1, FromData: from, ToData: to})
	return err
}

// portList matches one of several ports.
func (t *translator) portList(op expr.CmpOp, value string, offset uint32) error {
	var all [][]byte
	for one := range strings.SplitSeq(value, ",") {
		p, err := port(one)
		if err != nil {
			return err // also for a range
		}
		all = append(all, p)
	}
	lookup, err := t.set(all)
	if err != nil {
		return err
	}
	lookup.Invert = op == expr.CmpOpNeq
	t.loadPort(offset)
	t.add(lookup)
	return nil
}

// states matches the state of the connection.
func (t *translator) states(op expr.CmpOp, value string) error {
	bits := map[string]uint32{
		"INVALID": expr.CtStateBitINVALID, "ESTABLISHED": expr.CtStateBitESTABLISHED, "RELATED": expr.CtStateBitRELATED,
		"NEW": expr.CtStateBitNEW, "UNTRACKED": expr.CtStateBitUNTRACKED,
	}
	var mask uint32
	for one := range strings.SplitSeq(value, ",") {
		bit, known := bits[one]
		if !known {
			return errUnknown
		}
		mask |= bit
	}
	t.add(&expr.Ct{Key: expr.CtKeySTATE, Register: 1})
	t.masked(inverse(op), mask, 0) // any of the bits
	return nil
}

// inverse returns the opposite comparison.
func inverse(op expr.CmpOp) expr.CmpOp {
	if op == expr.CmpOpEq {
		return expr.CmpOpNeq
	}
	return expr.CmpOpEq
}

// masked compares the bits of register 1 that mask selects with a value.
func (t *translator) masked(op expr.CmpOp, mask, value uint32) {
	t.add(&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: native(mask), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: 1, Data: native(value)})
}

// native returns a number in the byte order of the host. The kernel keeps marks and states of
// connections in registers as numbers of the host.
func native(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// mark matches the packet's mark, as VALUE or VALUE/MASK.
func (t *translator) mark(op expr.CmpOp, value string) error {
	text, maskText, masked := strings.Cut(value, "/")
	n, err := strconv.ParseUint(text, 0, 32)
	mask := uint64(1<<32 - 1)
	if masked && err == nil {
		mask, err = strconv.ParseUint(maskText, 0, 32)
	}
	if err != nil {
		return errUnknown
	}
	t.add(&expr.Meta{Key: expr.MetaKeyMARK, Register: 1})
	t.masked(op, uint32(mask), uint32(n))
	return nil
}

// icmp matches the type of an ICMP message. The numbers are those of RFC 792, and of RFC 4443
// and RFC 4861 for IPv6.
func (t *translator) icmp(op expr.CmpOp, value string) error {
	names := map[string]byte{"echo-request": 8, "echo-reply": 0, "destination-unreachable": 3, "time-exceeded": 11}
	if t.ipv6 {
		names = map[string]byte{"echo-request": 128, "echo-reply": 129, "destination-unreachable": 1, "packet-too-big": 2, "time-exceeded": 3,
			"router-solicitation": 133, "router-advertisement": 134, "neighbour-solicitation": 135, "neighbour-advertisement": 136}
	}
	number, known := names[value]
	if !known {
		n, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return errUnknown
		}
		number = byte(n)
	}
	t.add(&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: op, Register: 1, Data: []byte{number}})
	return nil
}

// finish adds the target.
func (t *translator) finish() error {
	if wrong := t.foreignOption(); wrong != "" {
		return fmt.Errorf("%s with target %q: %w", wrong, t.target, errUnknown)
	}
	verdicts := map[string]expr.VerdictKind{"ACCEPT": expr.VerdictAccept, "DROP": expr.VerdictDrop, "RETURN": expr.VerdictReturn}
	if kind, ok := verdicts[t.target]; ok {
		t.add(&expr.Verdict{Kind: kind})
		return nil
	}
	switch t.target {
	case "":
	case "QUEUE":
		t.add(&expr.Queue{})
	case "NFQUEUE":
		n, err := strconv.ParseUint("0"+t.options["--queue-num"], 10, 16)
		t.add(&expr.Queue{Num: uint16(n)})
		return err
	case "MASQUERADE":
		t.add(&expr.Masq{})
	case "LOG":
		t.add(&expr.Log{Key: 1 << unix.NFTA_LOG_PREFIX, Data: []byte(t.options["--log-prefix"])})
	case "REJECT":
		return t.reject()
	case "SNAT":
		return t.nat(expr.NATTypeSourceNAT, t.options["--to-source"])
	case "DNAT":
		return t.nat(expr.NATTypeDestNAT, t.options["--to-destination"])
	case "REDIRECT":
		p, err := port(t.options["--to-ports"])
		t.add(&expr.Immediate{Register: 1, Data: p}, &expr.Redir{RegisterProtoMin: 1})
		return err
	case "MARK":
		n, err := strconv.ParseUint(t.options["--set-mark"], 0, 32)
		t.add(&expr.Immediate{Register: 1, Data: native(uint32(n))}, &expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1})
		return err
	default:
		return t.jump()
	}
	return nil
}

// foreignOption returns an option that belongs to another target than the rule's, or "".
func (t *translator) foreignOption() string {
	own := map[string]string{
		"--to-source": "SNAT", "--to-destination": "DNAT", "--to-ports": "REDIRECT", "--reject-with": "REJECT", "--log-prefix": "LOG",
		"--set-mark": "MARK", "--queue-num": "NFQUEUE",
	}
	for option := range t.options {
		if own[option] != t.target {
			return option
		}
	}
	return ""
}

// jump leads to another chain. The names of iptables' other targets are upper case; those of
// chains may be, too, so the kernel decides whether there is such a chain.
func (t *translator) jump() error {
	kind := expr.VerdictJump
	if t.goTo {
		kind = expr.VerdictGoto
	}
	if want := wrongChain(t.target); want != "" && !strings.HasPrefix(t.target, prefix) {
		return fmt.Errorf("target %q: expected %s", t.target, want)
	}
	t.add(&expr.Verdict{Kind: kind, Chain: t.target})
	return nil
}

// reject answers with an ICMP error, or a reset of TCP. The numbers are codes of ICMP type 3
// (RFC 792, RFC 1812) and of ICMPv6 type 1 (RFC 4443).
func (t *translator) reject() error {
	codes := map[string]uint8{
		"": 3, "icmp-port-unreachable": 3, "icmp-net-unreachable": 0, "icmp-host-unreachable": 1, "icmp-proto-unreachable": 2, "icmp-admin-prohibited": 13,
	}
	if t.ipv6 {
		codes = map[string]uint8{"": 4, "icmp6-port-unreachable": 4, "icmp6-no-route": 0, "icmp6-adm-prohibited": 1, "icmp6-addr-unreachable": 3}
	}
	with := t.options["--reject-with"]
	if with == "tcp-reset" {
		t.add(&expr.Reject{Type: unix.NFT_REJECT_TCP_RST})
		return nil
	}
	code, known := codes[with]
	if !known {
		return fmt.Errorf("--reject-with %s: %w", with, errUnknown)
	}
	t.add(&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: code})
	return nil
}

// nat translates to an address, with or without a port.
func (t *translator) nat(kind expr.NATType, to string) error {
	target, err := netip.ParseAddrPort(to)
	if err != nil {
		addr, err := netip.ParseAddr(strings.Trim(to, "[]"))
		if err != nil {
			return fmt.Errorf("target address %q: %w", to, errUnknown)
		}
		target = netip.AddrPortFrom(addr, 0)
	}
	if target.Addr().Is6() != t.ipv6 {
		return fmt.Errorf("target address %s: expected an address of the chain's protocol", to)
	}
	n := &expr.NAT{Type: kind, Family: uint32(family(t.ipv6)), RegAddrMin: 1}
	t.add(&expr.Immediate{Register: 1, Data: target.Addr().AsSlice()})
	if target.Port() != 0 {
		n.RegProtoMin = 2
		t.add(&expr.Immediate{Register: 2, Data: binary.BigEndian.AppendUint16(nil, target.Port())})
	}
	t.add(n)
	return nil
}

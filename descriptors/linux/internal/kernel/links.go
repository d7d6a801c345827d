package kernel

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// dumps is the number of attempts of a dump. The kernel interrupts a dump if the dumped
// objects change meanwhile (NLM_F_DUMP_INTR).
const dumps = 10

// dump repeats an interrupted dump.
func dump[T any](list func() (T, error)) (out T, err error) {
	for range dumps {
		out, err = list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return out, err
}

// Links implements Kernel.
func (k *real) Links() ([]Link, error) {
	found, err := dump(k.nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	links := make([]Link, len(found))
	for i, one := range found {
		links[i] = linkOf(one)
	}
	return links, nil
}

// LinkByName implements Kernel.
func (k *real) LinkByName(name string) (Link, error) {
	found, err := k.nl.LinkByName(name)
	if err != nil {
		return Link{}, fmt.Errorf("looking for link %s: %w", name, missing(err))
	}
	return linkOf(found), nil
}

// LinkByIndex implements Kernel.
func (k *real) LinkByIndex(index int) (Link, error) {
	found, err := k.nl.LinkByIndex(index)
	if err != nil {
		return Link{}, fmt.Errorf("looking for link %d: %w", index, missing(err))
	}
	return linkOf(found), nil
}

// Counters implements Kernel.
func (k *real) Counters(index int) (Counters, error) {
	found, err := k.nl.LinkByIndex(index)
	if err != nil {
		return Counters{}, fmt.Errorf("looking for link %d: %w", index, missing(err))
	}
	s := found.Attrs().Statistics
	if s == nil {
		return Counters{}, fmt.Errorf("link %d: the kernel has no counters of it", index)
	}
	return Counters{
		RxPackets: s.RxPackets, RxBytes: s.RxBytes, RxErrors: s.RxErrors, RxDropped: s.RxDropped,
		TxPackets: s.TxPackets, TxBytes: s.TxBytes, TxErrors: s.TxErrors, TxDropped: s.TxDropped,
	}, nil
}

// missing converts the library's error for a missing link to ENODEV.
func missing(err error) error {
	if _, ok := errors.AsType[netlink.LinkNotFoundError](err); ok {
		return unix.ENODEV
	}
	return err
}

// linkOf converts a link of the netlink library.
func linkOf(l netlink.Link) Link {
	a := l.Attrs()
	out := Link{
		Index: a.Index, Name: a.Name, Others: a.AltNames, Kind: l.Type(),
		Up: a.RawFlags&unix.IFF_UP != 0, MTU: a.MTU, MAC: a.HardwareAddr, Master: a.MasterIndex, Group: a.Group,
		About: About{
			Parent: a.ParentIndex, Oper: uint8(a.OperState), Flags: a.RawFlags, Encapsulation: a.EncapType,
			RxQueues: a.NumRxQueues, TxQueues: a.NumTxQueues, TxQueueLen: a.TxQLen,
		},
	}
	out.Alias, out.Owner = SplitAlias(a.Alias)
	switch l := l.(type) {
	case *netlink.Device:
		out.Kind = ""
	case *netlink.Tuntap:
		out.Kind = "tun"
	case *netlink.Veth:
		out.Peer = a.ParentIndex
	case *netlink.Vrf:
		out.Table = l.Table
	}
	return out
}

// AddLink implements Kernel.
func (k *real) AddLink(l Link) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Group = l.Name, l.Group
	var made netlink.Link
	switch l.Kind {
	case "dummy":
		made = &netlink.Dummy{LinkAttrs: attrs}
	case "vrf":
		made = &netlink.Vrf{LinkAttrs: attrs, Table: l.Table}
	default:
		return fmt.Errorf("making a link of kind %q: %w", l.Kind, unix.EINVAL)
	}
	return about(k.nl.LinkAdd(made), "making %s link %s", l.Kind, l.Name)
}

// AddVETH implements Kernel.
func (k *real) AddVETH(end Link, peer string, in Kernel) error {
	there, ok := in.(*real)
	if !ok {
		return fmt.Errorf("making veth link %s with an end in a namespace of another host: %w", end.Name, unix.EINVAL)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Group = end.Name, end.Group
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerNamespace = peer, netlink.NsFd(there.file.Fd())
	return about(k.nl.LinkAdd(pair), "making veth link %s", end.Name)
}

// DelLink implements Kernel.
func (k *real) DelLink(index int) error {
	return about(k.nl.LinkDel(at(index)), "removing %v", k.named(index))
}

// SetName implements Kernel.
func (k *real) SetName(index int, name string) error {
	return about(k.nl.LinkSetName(at(index), name), "naming %v %s", k.named(index), name)
}

// DelOther implements Kernel.
func (k *real) DelOther(index int, name string) error {
	return about(k.nl.LinkDelAltName(at(index), name), "taking the alternative name %s from %v", name, k.named(index))
}

// SetAlias implements Kernel.
func (k *real) SetAlias(index int, alias string) error {
	return about(k.nl.LinkSetAlias(at(index), alias), "giving %v the alias %s", k.named(index), alias)
}

// SetGroup implements Kernel.
func (k *real) SetGroup(index int, group uint32) error {
	return about(k.nl.LinkSetGroup(at(index), int(group)), "putting %v into the group %d", k.named(index), group)
}

// SetUp implements Kernel.
func (k *real) SetUp(index int, up bool) error {
	if up {
		return about(k.nl.LinkSetUp(at(index)), "setting %v up", k.named(index))
	}
	return about(k.nl.LinkSetDown(at(index)), "setting %v down", k.named(index))
}

// SetMTU implements Kernel.
func (k *real) SetMTU(index, mtu int) error {
	return about(k.nl.LinkSetMTU(at(index), mtu), "giving %v the MTU %d", k.named(index), mtu)
}

// SetMAC implements Kernel.
func (k *real) SetMAC(index int, mac net.HardwareAddr) error {
	return about(k.nl.LinkSetHardwareAddr(at(index), mac), "giving %v the address %v", k.named(index), mac)
}

// SetMaster implements Kernel.
func (k *real) SetMaster(index, master int) error {
	if master == 0 {
		return about(k.nl.LinkSetNoMaster(at(index)), "taking %v from its master", k.named(index))
	}
	return about(k.nl.LinkSetMaster(at(index), at(master)), "putting %v under %v", k.named(index), k.named(master))
}

// Move implements Kernel.
func (k *real) Move(index int, to Kernel) error {
	there, ok := to.(*real)
	if !ok {
		return fmt.Errorf("moving link %d to a namespace of another host: %w", index, unix.EINVAL)
	}
	err := k.nl.LinkSetNsFd(at(index), int(there.file.Fd()))
	return about(err, "moving %v to another namespace", k.named(index))
}

// at returns a link with this index, as the library requires it.
func at(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// named returns the name of a link, which is looked up when an error is printed.
func (k *real) named(index int) fmt.Stringer { return named{k, index} }

// A named finds the name of a link when it is printed, not before.
type named struct {
	k     *real
	index int
}

// String returns the name, which is asked for only when an error is printed.
func (n named) String() string {
	if l, err := n.k.LinkByIndex(n.index); err == nil {
		return "link " + l.Name
	}
	return fmt.Sprint("link ", n.index)
}

// about adds the failed action to an error.
func about(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

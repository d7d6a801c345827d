package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Filter is the packet filter of a namespace. The rules themselves are read and written by
// programs, or through sockets that are opened inside the namespace.
type Filter interface {
	// Start starts a program inside the namespace. The caller waits for its end.
	Start(cmd *exec.Cmd) error
	// Within calls f on a thread inside the namespace, to open sockets there. f must not
	// start goroutines that stay.
	Within(f func() error) error
	// HasRules reports whether the namespace has any table of rules. It is much cheaper than
	// a program that reads the rules.
	HasRules() (bool, error)
	// SubscribeRules opens the notifications about changed chains and rules. Only nftables
	// sends them, also for changes by iptables-nft; the older iptables-legacy sends none.
	SubscribeRules() (RuleEvents, error)
}

// RuleEvents is a subscription to changes of the packet filter.
type RuleEvents interface {
	// Next waits for notifications. It returns ErrLost after an overflow, and another
	// error when the subscription has ended. Close ends it.
	Next() ([]RuleEvent, error)
	Close() error
}

// A RuleEvent says that something in a chain changed. Whether the change was an addition or
// a removal is left out: the reader reads the rules again anyway.
type RuleEvent struct {
	IPv6  bool
	Table string
	Chain string // empty: the whole table
	// Used says that the chain has just got this name, and has rules or jumps already: somebody has renamed it, or made all
	// at once. The kernel does not tell the former name.
	Used bool
}

// Start implements Filter. The child has the namespace of the thread that starts it.
func (k *real) Start(cmd *exec.Cmd) error { return within(k.file, cmd.Start) }

// Within implements Filter.
func (k *real) Within(f func() error) error { return within(k.file, f) }

// SubscribeRules implements Filter.
func (k *real) SubscribeRules() (RuleEvents, error) {
	s, err := subscribe(k, "changes of rules", parseRule, unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// sizeofNfgenmsg is the size of struct nfgenmsg: family, version and resource.
const sizeofNfgenmsg = 4

// parseRule parses a notification about a table, chain or rule of IPv4 or IPv6. The layout
// is that of linux/netfilter/nf_tables.h.
func parseRule(m syscall.NetlinkMessage) (RuleEvent, bool) {
	if m.Header.Type>>8 != unix.NFNL_SUBSYS_NFTABLES || len(m.Data) < sizeofNfgenmsg {
		return RuleEvent{}, false
	}
	var e RuleEvent
	switch m.Data[0] {
	case unix.NFPROTO_IPV4:
	case unix.NFPROTO_IPV6:
		e.IPv6 = true
	default:
		return RuleEvent{}, false
	}
	nameOfChain := uint16(0) // the attribute with the name of the chain; 0: none
	switch m.Header.Type & 0xff {
	case unix.NFT_MSG_NEWTABLE, unix.NFT_MSG_DELTABLE:
	case unix.NFT_MSG_NEWCHAIN, unix.NFT_MSG_DELCHAIN:
		nameOfChain = unix.NFTA_CHAIN_NAME
	case unix.NFT_MSG_NEWRULE, unix.NFT_MSG_DELRULE:
		nameOfChain = unix.NFTA_RULE_CHAIN
	default:
		return RuleEvent{}, false
	}
	for kind, value := range attributes(m.Data[sizeofNfgenmsg:]) {
		switch kind {
		case unix.NFTA_TABLE_NAME: // 1, as NFTA_CHAIN_TABLE and NFTA_RULE_TABLE
			e.Table = unix.ByteSliceToString(value)
		case nameOfChain:
			e.Chain = unix.ByteSliceToString(value)
		case unix.NFTA_CHAIN_USE:
			e.Used = m.Header.Type&0xff == unix.NFT_MSG_NEWCHAIN && slices.ContainsFunc(value, func(b byte) bool { return b != 0 })
		}
	}
	return e, e.Table != ""
}

// HasRules implements Filter.
func (k *real) HasRules() (has bool, err error) {
	err = within(k.file, func() error {
		for _, file := range []string{"ip_tables_names", "ip6_tables_names"} {
			// A kernel without iptables-legacy has no such file.
			if names, err := os.ReadFile("/proc/thread-self/net/" + file); err == nil && len(names) > 0 {
				has = true
				return nil
			}
		}
		var err error
		has, err = hasTables()
		return err
	})
	return has, err
}

// hasTables asks nftables for its tables in the namespace of the calling thread. A kernel
// without nftables has none.
func hasTables() (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening a netfilter socket: %w", err)
	}
	defer unix.Close(fd)
	ask := make([]byte, unix.SizeofNlMsghdr+sizeofNfgenmsg)
	binary.NativeEndian.PutUint32(ask, uint32(len(ask)))
	binary.NativeEndian.PutUint16(ask[4:], unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETTABLE)
	binary.NativeEndian.PutUint16(ask[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, fmt.Errorf("asking for tables of rules: %w", err)
	}
	// The first message of the answer is enough: a table, the end, or an error.
	answer := make([]byte, 64<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return false, fmt.Errorf("reading tables of rules: %w", err)
	}
	if n < unix.SizeofNlMsghdr {
		return false, errors.New("reading tables of rules: the kernel's answer is incomplete")
	}
	switch kind := binary.NativeEndian.Uint16(answer[4:]); {
	case kind == unix.NLMSG_DONE:
		return false, nil
	case kind == unix.NLMSG_ERROR && n >= unix.SizeofNlMsghdr+4:
		errno := unix.Errno(-int32(number(answer[unix.SizeofNlMsghdr:])))
		if errno == unix.EOPNOTSUPP || errno == unix.EINVAL {
			return false, nil // no nftables in this kernel
		}
		return false, fmt.Errorf("reading tables of rules: %w", errno)
	}
	return true, nil
}

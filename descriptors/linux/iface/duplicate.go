package iface

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// The kernel tests an IPv6 address when it is added (RFC 4862, duplicate address detection), and says the result in the
// state of the address:
//
//	state                   the value is
//	tentative, first time   CONFIGURED: on a link without carrier the test waits, perhaps for ever
//	dadfailed               RETRYING: another host has the address, and the kernel does not use it
//	tentative after that    RETRYING, until the kernel uses the address
//	deprecated              CONFIGURED: the address is in use. Its lifetimes belong to others, who renumber by them
//
// The kernel tests an address only when it is added. So an attempt to have one used removes and adds it. The test ends
// later: the drift.Watcher then has the value tried again. Retrieve reports an address that the kernel does not use with
// its state behind it ("fd00::1/64 dadfailed"). So it differs from the declared one, but goes when that goes.

// stateOf returns the state behind the address of a derived value; "": the address is in use.
func stateOf(v *interfaces.Interface) string {
	for _, addr := range v.GetIpAddresses() {
		_, state := cutState(addr)
		return state
	}
	return ""
}

// cutState splits an address and its state.
func cutState(text string) (addr, state string) {
	addr, state, _ = strings.Cut(text, " ")
	return addr, state
}

// withState returns a declared address as Retrieve reports it.
func (h *handler) withState(addr string, ns kernel.ID, have kernel.Addr) string {
	switch {
	case have.Duplicate:
		return addr + " dadfailed"
	case have.Tentative && h.Watch.Doubted(drift.Address(ns, have)):
		return addr + " tentative"
	}
	return addr
}

// testAgain returns an error about an address that another host has. From time to time, it has the kernel test the
// address again, unless others have made it.
func (h *handler) testAgain(space *netns.Space, meta Meta, have kernel.Addr) error {
	at, addr := drift.Address(space.ID, have), kernel.Addr{Link: have.Link, Prefix: have.Prefix}
	if !h.Watch.Doubted(at) {
		h.Watch.Forget(at)
		h.Watch.Doubt(at)
	}
	if meta.shared() && !h.made(space, addr) || !h.Watch.TestAgain(at) {
		return duplicateAddress(meta, addr)
	}
	if err := space.DelAddr(addr); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return err
	}
	if err := space.AddAddr(addr); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return duplicateAddress(meta, addr)
}

// doubtful returns an error if another host had the address when the kernel tested it last.
func (h *handler) doubtful(space *netns.Space, meta Meta, addr kernel.Addr) error {
	if h.Watch.Doubted(drift.Address(space.ID, addr)) {
		return duplicateAddress(meta, addr)
	}
	return nil
}

// duplicateAddress is the error about an address that another host has.
func duplicateAddress(meta Meta, addr kernel.Addr) error {
	return fmt.Errorf("address %v: %w of %s (state dadfailed); the kernel tests it again from time to time; or change one of the two",
		addr.Prefix, ErrDuplicate, meta.HostName)
}

package keys

import "strings"

// A Source is the origin of an address of an interface.
type Source string

// The sources of addresses.
const (
	Undefined Source = "undefined"
	Static    Source = "static"    // part of the interface's value
	FromDHCP  Source = "from_dhcp" // a lease
	AllocRef  Source = "alloc_ref" // a reference to an allocated address
	Existing  Source = "existing"  // another program added it to the interface
	allocMark        = "alloc:"
)

// An Address is the content of the key of an interface address.
type Address struct {
	Interface string // logical name
	Source    Source
	Addr      string // in the user's notation: "10.0.0.1/24", "alloc:net1"
}

// Key returns the key of the address. A reference always has the source AllocRef.
func (a Address) Key() string {
	if strings.HasPrefix(a.Addr, allocMark) {
		a.Source = AllocRef
	}
	if a.Source == "" {
		a.Source = Undefined
	}
	return Addresses(a.Interface) + string(a.Source) + "/" + or(a.Addr)
}

// Addresses returns the prefix of the keys of all addresses of one interface.
func Addresses(iface string) string { return Interface + or(iface) + "/address/" }

// ParseAddress parses the key of an address of an interface.
func ParseAddress(key string) (Address, bool) {
	rest, ok := part(key)
	if !ok || has(rest, "vrf") {
		return Address{}, false
	}
	iface, tail, ok := around(rest, "/address/")
	if !ok {
		return Address{}, false
	}
	source, addr, ok := around(tail, "/")
	if !ok || !Source(source).known() {
		return Address{}, false
	}
	if strings.HasPrefix(addr, allocMark) && Source(source) != AllocRef {
		return Address{}, false
	}
	return Address{Interface: iface, Source: Source(source), Addr: addr}, true
}

// known reports whether a key may have this source.
func (s Source) known() bool {
	switch s {
	case Undefined, Static, FromDHCP, AllocRef, Existing:
		return true
	}
	return false
}

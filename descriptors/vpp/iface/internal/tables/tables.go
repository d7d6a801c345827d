// Package tables compares the tables that an interface is bound to with its memberships in VRFs.
package tables

import "github.com/keyplane/keyplane/descriptors/vpp/keys"

// Versions returns v with its effective IP versions. A borrower uses both.
func Versions(v keys.VRF) keys.VRF {
	if v.From != "" {
		v.IPv4, v.IPv6 = true, true
	}
	return v
}

// IsForIPv4 tells whether a key is that of a membership for IPv4.
func IsForIPv4(membership string) bool {
	v, ok := keys.ParseVRF(membership)
	return ok && Versions(v).IPv4
}

// IsForIPv6 tells whether a key is that of a membership for IPv6.
func IsForIPv6(membership string) bool {
	v, ok := keys.ParseVRF(membership)
	return ok && Versions(v).IPv6
}

// Bound has the tables that an interface is bound to: IPv4 and IPv6. Table 0 stands for
// both "the default table" and "none": VPP does not distinguish them.
type Bound [2]uint32

// Needs tells whether v is a membership of tables that all are without one.
func (b Bound) Needs(v keys.VRF) bool {
	all := Versions(v)
	return b != b.Without(v) && (!all.IPv4 || b[0] != 0) && (!all.IPv6 || b[1] != 0)
}

// Without returns b without the tables of a membership.
func (b Bound) Without(v keys.VRF) Bound {
	v = Versions(v)
	if v.IPv4 && (v.From != "" || b[0] == v.ID) {
		b[0] = 0
	}
	if v.IPv6 && (v.From != "" || b[1] == v.ID) {
		b[1] = 0
	}
	return b
}

// Memberships returns one membership per table other than 0.
func (b Bound) Memberships(name string) (out []keys.VRF) {
	if b[0] != 0 {
		out = append(out, keys.VRF{Interface: name, ID: b[0], IPv4: true, IPv6: b[0] == b[1]})
	}
	if b[1] != 0 && b[0] != b[1] {
		out = append(out, keys.VRF{Interface: name, ID: b[1], IPv6: true})
	}
	return out
}

package kinds

import (
	"fmt"
	"hash/fnv"

	"go.fd.io/govpp/binapi/ethernet_types"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// MarkMAC returns the MAC address of an interface. If the value declares none, it is
// derived from the host and the name. So it is unique, and stays the same when VPP is
// restarted. Two agents of one host have the same Host, so their interfaces need different
// names; the label is a part of Host for all but the default one.
func (e *Env) MarkMAC(v *interfaces.Interface) ethernet_types.MacAddress {
	if mac, ok := ParseMAC(v.GetPhysAddress()); ok {
		return mac
	}
	return e.derivedMAC(v.GetName())
}

// FillerMAC returns the MAC address of this agent's fillers; see package leftovers.
func (e *Env) FillerMAC() ethernet_types.MacAddress {
	return e.derivedMAC("\x00filler") // no interface can have this name
}

// derivedMAC returns the MAC address that is derived from the host and a name.
func (e *Env) derivedMAC(name string) (mac ethernet_types.MacAddress) {
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s\x00%s", e.Host, name)
	copy(mac[:], sum.Sum(nil))
	mac[0] = mac[0]&^0x03 | 0x02 // unicast, locally administered
	return mac
}

// byMAC recognizes interfaces that were created with the MAC address of MarkMAC. A person
// may have created an interface with the same address; that one counts as ours.
func byMAC(e *Env, f *Found, v *interfaces.Interface) bool {
	return f.Details.L2Address == e.MarkMAC(v)
}

// byName recognizes interfaces that have their value's name as VPP's own name.
func byName(_ *Env, f *Found, v *interfaces.Interface) bool {
	return f.Details.InterfaceName == v.GetName()
}

// ParseMAC returns a MAC address; false: the text is none.
func ParseMAC(text string) (ethernet_types.MacAddress, bool) {
	mac, err := vppwire.MAC(text)
	return mac, err == nil
}

package kinds

import (
	"fmt"
	"hash/fnv"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"go.fd.io/govpp/binapi/ethernet_types"
)

// mark is the MAC address of an interface whose value declares none: of its name and the host, so
// that others do not have it. It stays the same when VPP is started anew.
func (e *Env) MarkMAC(v *interfaces.Interface) (mac ethernet_types.MacAddress) {
	if mac, ok := ParseMAC(v.GetPhysAddress()); ok {
		return mac
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s\x00%s", e.Host, v.GetName())
	copy(mac[:], sum.Sum(nil))
	mac[0] = mac[0]&^0x03 | 0x02 // of one, and given by nobody
	return mac
}

// byMAC is the mark of a kind whose interfaces are made with that MAC address.
func byMAC(e *Env, f *Found, v *interfaces.Interface) bool {
	return f.Details.L2Address == e.MarkMAC(v)
}

// byName is the mark of a kind whose interfaces VPP calls as their values are.
func byName(_ *Env, f *Found, v *interfaces.Interface) bool {
	return f.Details.InterfaceName == v.GetName()
}

func ParseMAC(text string) (ethernet_types.MacAddress, bool) {
	mac, err := vppwire.MAC(text)
	return mac, err == nil
}

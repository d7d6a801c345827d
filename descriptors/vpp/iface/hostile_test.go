package iface

import (
	"errors"
	"testing"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// Prefix lengths are checked before addresses are used.
func TestPrefixLengthsOfVPP(t *testing.T) {
	for _, tt := range []struct {
		af   ip_types.AddressFamily
		len  uint8
		fine bool
	}{
		{ip_types.ADDRESS_IP4, 32, true}, {ip_types.ADDRESS_IP4, 33, false}, {ip_types.ADDRESS_IP4, 255, false},
		{ip_types.ADDRESS_IP6, 128, true}, {ip_types.ADDRESS_IP6, 129, false}, {77, 32, true}, {77, 33, false},
	} {
		d := ip.IPAddressDetails{SwIfIndex: ^ip.IPAddressDetails{}.SwIfIndex}
		d.Prefix.Address.Af, d.Prefix.Len = tt.af, tt.len
		_, err := prefixesOf([]ip.IPAddressDetails{d})
		if tt.fine != (err == nil) || err != nil && !errors.Is(err, conn.ErrProtocol) {
			t.Errorf("family %d with /%d: %v", tt.af, tt.len, err)
		}
	}
}

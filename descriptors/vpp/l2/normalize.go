package l2

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
)

// normalizeBridge removes prefix lengths from the addresses in the ARP termination table.
func normalizeBridge(_ string, v *l2.BridgeDomain) (*l2.BridgeDomain, []string) {
	var n *l2.BridgeDomain
	var warnings []string
	for i, e := range v.GetArpTerminationTable() {
		if !spelling.HasLength(e.GetIpAddress()) {
			continue
		}
		if n == nil {
			n = proto.CloneOf(v)
		}
		field := fmt.Sprintf("arp_termination_table[%d].ip_address", i)
		warnings = append(warnings, spelling.Host(field, &n.GetArpTerminationTable()[i].IpAddress)...)
	}
	if n == nil {
		return v, nil
	}
	return n, warnings
}

// normalizeFIB removes the outgoing interface of an entry that drops.
func normalizeFIB(_ string, v *l2.FIBEntry) (*l2.FIBEntry, []string) {
	if v.GetAction() != l2.FIBEntry_DROP || v.GetOutgoingInterface() == "" {
		return v, nil
	}
	warnings := []string{models.Ignored("outgoing_interface", v.GetOutgoingInterface(), "an entry with action DROP has none")}
	v = proto.CloneOf(v)
	v.OutgoingInterface = ""
	return v, warnings
}

package l2

import (
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// memberClaims: an interface is in one bridge domain, or cross-connected.
func memberClaims(key string, _ *l2.BridgeDomain_Interface) []scheduler.Claim {
	_, name, _ := keys.ParseBridgeInterface(key)
	return []scheduler.Claim{claimOn(name, "name")}
}

func xconnectClaims(_ string, v *l2.XConnectPair) []scheduler.Claim {
	return []scheduler.Claim{claimOn(v.GetReceiveInterface(), "receive_interface")}
}

// claimOn is on what becomes of the packets that an interface receives.
func claimOn(name, field string) scheduler.Claim {
	return scheduler.Claim{
		Resource: "vpp-layer-2/" + name, Field: field, Value: name,
		Want: "an interface that is in no other bridge domain or cross-connect",
	}
}

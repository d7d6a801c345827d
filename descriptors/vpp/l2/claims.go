package l2

import (
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// memberClaims claims the received packets of an interface: they go to one bridge domain or
// one cross-connect.
func memberClaims(key string, _ *l2.BridgeDomain_Interface) []scheduler.Claim {
	_, name, _ := keys.BridgeMembers.Parse(key)
	return []scheduler.Claim{claimOn(name, "name")}
}

// xconnectClaims claims the same for the receiving interface of a cross-connect.
func xconnectClaims(_ string, v *l2.XConnectPair) []scheduler.Claim {
	return []scheduler.Claim{claimOn(v.GetReceiveInterface(), "receive_interface")}
}

// claimOn returns the claim on the packets that an interface receives. Two values with the
// same claim conflict, and the scheduler applies only one of them.
func claimOn(name, field string) scheduler.Claim {
	return scheduler.Claim{
		Resource: "vpp-layer-2/" + name, Field: field, Value: name,
		Want: "an interface that is in no other bridge domain or cross-connect",
	}
}

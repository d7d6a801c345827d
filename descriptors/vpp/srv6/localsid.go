package srv6

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/sr_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
	"github.com/keyplane/keyplane/scheduler"
)

// The functions of local SIDs. End.AD belongs to a plugin, which gets its number when VPP
// starts; behaviorAD is the number that this package uses. The other numbers are those of VPP's
// messages (VPP sr_types.api, sr_behavior). RFC 8986 defines the functions themselves.
const (
	behaviorEnd = sr_types.SR_BEHAVIOR_API_END
	behaviorX   = sr_types.SR_BEHAVIOR_API_X
	behaviorT   = sr_types.SR_BEHAVIOR_API_T
	behaviorDX2 = sr_types.SR_BEHAVIOR_API_DX2
	behaviorDX4 = sr_types.SR_BEHAVIOR_API_DX4
	behaviorDX6 = sr_types.SR_BEHAVIOR_API_DX6
	behaviorDT4 = sr_types.SR_BEHAVIOR_API_DT4
	behaviorDT6 = sr_types.SR_BEHAVIOR_API_DT6
	behaviorAD  = sr_types.SrBehavior(255)
)

// localSIDDescriptor implements the local SIDs. VPP changes nothing about a SID in place. So
// there is no Update: each difference deletes the SID and creates it again.
func (h *handler) localSIDDescriptor() scheduler.Descriptor[*srv6.LocalSID, struct{}] {
	return scheduler.Descriptor[*srv6.LocalSID, struct{}]{
		Name:  LocalSIDName,
		Model: models.For[*srv6.LocalSID](),

		Normalize: normalizeSID,
		Validate:  validateSID,
		Equivalent: func(_ string, old, new *srv6.LocalSID) bool {
			return old.GetInstallationVrfId() == new.GetInstallationVrfId() && functionOf(old) == functionOf(new)
		},
		Dependencies: dependenciesOfSID,
		Claims:       claimsOfSID,
		// VPP shows addresses in the canonical spelling only.
		Resolve: func(_ string, v *srv6.LocalSID) *srv6.LocalSID {
			if spelling.Canonical(v.GetSid()) == v.GetSid() {
				return v
			}
			v = proto.CloneOf(v)
			v.Sid = spelling.Canonical(v.GetSid())
			return v
		},

		Create: h.createSID,
		Delete: h.deleteSID,
		Retrieve: readback.Retriever[*srv6.LocalSID]{
			Read:       h.readSIDs,
			ID:         func(v *srv6.LocalSID) string { return spelling.Canonical(v.GetSid()) },
			AsDeclared: func(v, declared *srv6.LocalSID) { v.Sid = declared.GetSid() },
		}.Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

// A function is the end function of a local SID. Fields that a function does not have are
// zero, so two functions can be compared.
type function struct {
	behavior sr_types.SrBehavior // 0: none
	psp      bool                // the routing header goes before the last segment
	out, in  string              // interfaces
	table    uint32              // to look up in
	next     netip.Addr          // not valid: there is none
}

// functionOf returns the function of a SID. Addresses are parsed, so two spellings of one
// address give equal functions. A SID without a function gives the zero function, which Validate
// refuses.
func functionOf(v *srv6.LocalSID) function {
	switch f := v.GetEndFunction().(type) {
	case *srv6.LocalSID_BaseEndFunction:
		return function{behavior: behaviorEnd, psp: f.BaseEndFunction.GetPsp()}
	case *srv6.LocalSID_EndFunctionX:
		x := f.EndFunctionX
		return function{behavior: behaviorX, psp: x.GetPsp(), out: x.GetOutgoingInterface(), next: unicast(x.GetNextHop())}
	case *srv6.LocalSID_EndFunctionT:
		return function{behavior: behaviorT, psp: f.EndFunctionT.GetPsp(), table: f.EndFunctionT.GetVrfId()}
	case *srv6.LocalSID_EndFunctionDx2:
		return function{behavior: behaviorDX2, out: f.EndFunctionDx2.GetOutgoingInterface()}
	case *srv6.LocalSID_EndFunctionDx4:
		x := f.EndFunctionDx4
		return function{behavior: behaviorDX4, out: x.GetOutgoingInterface(), next: unicast4(x.GetNextHop())}
	case *srv6.LocalSID_EndFunctionDx6:
		x := f.EndFunctionDx6
		return function{behavior: behaviorDX6, out: x.GetOutgoingInterface(), next: unicast(x.GetNextHop())}
	case *srv6.LocalSID_EndFunctionDt4:
		return function{behavior: behaviorDT4, table: f.EndFunctionDt4.GetVrfId()}
	case *srv6.LocalSID_EndFunctionDt6:
		return function{behavior: behaviorDT6, table: f.EndFunctionDt6.GetVrfId()}
	case *srv6.LocalSID_EndFunctionAd:
		ad := f.EndFunctionAd
		return function{behavior: behaviorAD, out: ad.GetOutgoingInterface(), in: ad.GetIncomingInterface(), next: service(ad.GetL3ServiceAddress())}
	}
	return function{}
}

// service reads the address of a service, of either IP version.
func service(text string) netip.Addr {
	if a := unicast4(text); a.IsValid() {
		return a
	}
	return unicast(text)
}

// set gives a SID this function. It is the inverse of functionOf. It leaves out the VLAN tag of
// End.DX2, as normalizeSID does.
func (f function) set(v *srv6.LocalSID) {
	next := ""
	if f.next.IsValid() {
		next = f.next.String()
	}
	switch f.behavior {
	case behaviorEnd:
		v.EndFunction = &srv6.LocalSID_BaseEndFunction{BaseEndFunction: &srv6.LocalSID_End{Psp: f.psp}}
	case behaviorX:
		v.EndFunction = &srv6.LocalSID_EndFunctionX{EndFunctionX: &srv6.LocalSID_EndX{Psp: f.psp, OutgoingInterface: f.out, NextHop: next}}
	case behaviorT:
		v.EndFunction = &srv6.LocalSID_EndFunctionT{EndFunctionT: &srv6.LocalSID_EndT{Psp: f.psp, VrfId: f.table}}
	case behaviorDX2:
		v.EndFunction = &srv6.LocalSID_EndFunctionDx2{EndFunctionDx2: &srv6.LocalSID_EndDX2{OutgoingInterface: f.out}}
	case behaviorDX4:
		v.EndFunction = &srv6.LocalSID_EndFunctionDx4{EndFunctionDx4: &srv6.LocalSID_EndDX4{OutgoingInterface: f.out, NextHop: next}}
	case behaviorDX6:
		v.EndFunction = &srv6.LocalSID_EndFunctionDx6{EndFunctionDx6: &srv6.LocalSID_EndDX6{OutgoingInterface: f.out, NextHop: next}}
	case behaviorDT4:
		v.EndFunction = &srv6.LocalSID_EndFunctionDt4{EndFunctionDt4: &srv6.LocalSID_EndDT4{VrfId: f.table}}
	case behaviorDT6:
		v.EndFunction = &srv6.LocalSID_EndFunctionDt6{EndFunctionDt6: &srv6.LocalSID_EndDT6{VrfId: f.table}}
	case behaviorAD:
		v.EndFunction = &srv6.LocalSID_EndFunctionAd{EndFunctionAd: &srv6.LocalSID_EndAD{OutgoingInterface: f.out, IncomingInterface: f.in, L3ServiceAddress: next}}
	default: // the model has no other
	}
}

// looksUp reports whether the function looks up packets in a table, and of which IP version. For
// other functions, the second result has no meaning.
func (f function) looksUp() (looksUp, ipv6 bool) {
	return f.behavior == behaviorT || f.behavior == behaviorDT4 || f.behavior == behaviorDT6, f.behavior != behaviorDT4
}

// normalizeSID ignores the VLAN tag of End.DX2, as VPP does.
func normalizeSID(_ string, v *srv6.LocalSID) (*srv6.LocalSID, []string) {
	tag := v.GetEndFunctionDx2().GetVlanTag()
	if tag == 0 {
		return v, nil
	}
	v = proto.CloneOf(v)
	v.GetEndFunctionDx2().VlanTag = 0
	return v, []string{models.Ignored("end_function_dx2.vlan_tag", tag, "VPP sends frames as they are; a VLAN sub-interface as outgoing_interface can tag them")}
}

// validateSID checks the fields that need no other value. Tables and interfaces are
// dependencies, because they may appear later.
func validateSID(_ string, v *srv6.LocalSID) error {
	var f faults
	f.address("sid", v.GetSid())
	via := func(prefix, next string, valid bool, allowed string) {
		if !valid {
			f.Add(prefix+".next_hop", next, "%s", allowed)
		}
	}
	const ipv4, ipv6 = `an IPv4 unicast address, such as "10.0.0.1"`, `an IPv6 unicast address, such as "fd00::1"`
	switch e := v.GetEndFunction().(type) {
	case nil:
		f.Add("end_function", nil, "one of base_end_function, end_function_x, _t, _dx2, _dx4, _dx6, _dt4, _dt6 and _ad")
	case *srv6.LocalSID_EndFunctionX:
		f.named("end_function_x.outgoing_interface", e.EndFunctionX.GetOutgoingInterface())
		via("end_function_x", e.EndFunctionX.GetNextHop(), unicast(e.EndFunctionX.GetNextHop()).IsValid(), ipv6)
	case *srv6.LocalSID_EndFunctionDx2:
		f.named("end_function_dx2.outgoing_interface", e.EndFunctionDx2.GetOutgoingInterface())
	case *srv6.LocalSID_EndFunctionDx4:
		f.named("end_function_dx4.outgoing_interface", e.EndFunctionDx4.GetOutgoingInterface())
		via("end_function_dx4", e.EndFunctionDx4.GetNextHop(), unicast4(e.EndFunctionDx4.GetNextHop()).IsValid(), ipv4)
	case *srv6.LocalSID_EndFunctionDx6:
		f.named("end_function_dx6.outgoing_interface", e.EndFunctionDx6.GetOutgoingInterface())
		via("end_function_dx6", e.EndFunctionDx6.GetNextHop(), unicast(e.EndFunctionDx6.GetNextHop()).IsValid(), ipv6)
	case *srv6.LocalSID_EndFunctionAd:
		f.named("end_function_ad.outgoing_interface", e.EndFunctionAd.GetOutgoingInterface())
		f.named("end_function_ad.incoming_interface", e.EndFunctionAd.GetIncomingInterface())
		if at := e.EndFunctionAd.GetL3ServiceAddress(); at != "" && !service(at).IsValid() {
			f.Add("end_function_ad.l3_service_address", at, `a unicast address, such as "10.0.0.1" or "fd00::1", or nothing for a service that works on frames`)
		}
	}
	return f.Err()
}

// named refuses an interface without a name.
func (f *faults) named(field, name string) {
	if name == "" {
		f.Add(field, "", "the name of an interface")
	}
}

// dependenciesOfSID requires tables and interfaces. Table 0 exists always. Each dependency
// prevents a crash or a refusal: VPP dies if it looks up packets in a missing table.
func dependenciesOfSID(_ string, v *srv6.LocalSID) []scheduler.Dependency {
	var out []scheduler.Dependency
	need := func(label, key string) { out = append(out, scheduler.Dependency{Label: label, Key: key}) }
	f := functionOf(v)
	if vrf := v.GetInstallationVrfId(); vrf != 0 {
		need("vrf-table-exists", keys.VRFTable(vrf, true))
	}
	if looksUp, ipv6 := f.looksUp(); looksUp && f.table != 0 {
		need("lookup-vrf-table-exists", keys.VRFTable(f.table, ipv6))
	}
	if f.out != "" {
		need("interface-exists", keys.Interface(f.out).Key())
	}
	if f.in != "" {
		need("incoming-interface-exists", keys.Interface(f.in).Key())
	}
	return out
}

// claimsOfSID claims the address: VPP has one SID per address in all tables together. End.AD
// also claims the packets that come back: VPP replaces the service of an interface and IP
// version without an error, and the other one would get no packets.
func claimsOfSID(_ string, v *srv6.LocalSID) []scheduler.Claim {
	address := spelling.Canonical(v.GetSid())
	out := []scheduler.Claim{
		{Resource: "vpp-srv6-sid/" + address, Field: "sid", Value: v.GetSid(), Want: "an address without another local SID, also in other tables"},
		claimOnAddress("sid", v.GetSid(), v.GetInstallationVrfId(), address),
	}
	f := functionOf(v)
	if f.behavior != behaviorAD {
		return out
	}
	const field = "end_function_ad.incoming_interface"
	switch {
	case !f.next.IsValid():
		out = append(out, claimOnFrames(field, f.in))
	default:
		out = append(out, scheduler.Claim{
			Resource: fmt.Sprintf("vpp-srv6-proxy/%s/%t", f.in, f.next.Is6()), Field: field, Value: f.in,
			Want: "an interface without another service of this IP version",
		})
	}
	return out
}

// claimOnAddress claims an address in an IPv6 table: segment routing has one use for it. Without
// the claim, VPP would refuse the second value with an error about a route.
func claimOnAddress(field, spelled string, table uint32, address string) scheduler.Claim {
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-srv6-address/%d/%s", table, address), Field: field, Value: spelled,
		Want: "an address that no other local SID, policy or steering has in this table",
	}
}

// claimOnFrames claims the frames that an interface receives. Bridge domains and cross-connects of
// the package l2 claim the same resource, so the scheduler applies only one of these values.
func claimOnFrames(field, name string) scheduler.Claim {
	return scheduler.Claim{
		Resource: "vpp-layer-2/" + name, Field: field, Value: name,
		Want: "an interface that is in no bridge domain or cross-connect, and gives its frames to nothing else of segment routing",
	}
}

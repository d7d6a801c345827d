package kinds

import (
	"context"
	"errors"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// anyID makes VPP choose the ID of a bond. The value is VPP's own for "any" (bond.api).
const anyID = ^uint32(0)

// bondKind is the kind of BOND_INTERFACE. Its members are derived. A bond with a declared
// ID is recognised by it. With anyID the link identifies nothing.
//
// A MAC address that is set later does not reach the members, and the next first member
// replaces it by its own (VPP bonding/cli.c, bond_add_member).
func bondKind() Kind {
	return Kind{
		Link:           "bond",
		CreatedWithMAC: true,
		Validate:       validateBond,
		SameLink:       sameBond,
		Marked:         func(_ *Env, _ *Found, v *interfaces.Interface) bool { return v.GetBond().GetId() != anyID },
		Create:         createBond,
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return e.API.Call(ctx, &bond.BondDelete{SwIfIndex: meta.SwIfIndex()}, &bond.BondDeleteReply{})
		},
		Retrieve: retrieveBonds,
	}
}

// validateBond refuses a member that is declared twice in different ways. Equal
// repetitions are harmless, and one of them counts.
func validateBond(f *Findings, v *interfaces.Interface) {
	b := v.GetBond()
	if b.GetMode() == interfaces.BondLink_UNKNOWN || interfaces.BondLink_Mode_name[int32(b.GetMode())] == "" {
		f.Add("bond.mode", b.GetMode().String(), "ROUND_ROBIN, ACTIVE_BACKUP, XOR, BROADCAST or LACP")
	}
	if interfaces.BondLink_LoadBalance_name[int32(b.GetLb())] == "" {
		f.Add("bond.lb", int32(b.GetLb()), "L2, L34, L23, RR, BC or AB")
	}
	seen := map[string]int{}
	for i, m := range b.GetBondedInterfaces() {
		field := fmt.Sprintf("bond.bonded_interfaces[%d].name", i)
		if m.GetName() == "" || m.GetName() == v.GetName() {
			f.Add(field, m.GetName(), "the name of another interface")
		}
		if first, twice := seen[m.GetName()]; twice && !proto.Equal(m, b.GetBondedInterfaces()[first]) {
			f.Add(field, m.GetName(), "each interface once, it is bonded_interfaces[%d] too, in another way", first)
		}
		seen[m.GetName()] = i
	}
}

// A bondLink has the settings of a bond's creation.
type bondLink struct {
	id   uint32
	mode interfaces.BondLink_Mode
	lb   interfaces.BondLink_LoadBalance
}

// bondOf ignores the load balancing of modes that have only one.
func bondOf(v *interfaces.Interface) bondLink {
	b := v.GetBond()
	out := bondLink{id: b.GetId(), mode: b.GetMode()}
	if b.GetMode() == interfaces.BondLink_XOR || b.GetMode() == interfaces.BondLink_LACP {
		out.lb = b.GetLb()
	}
	return out
}

// sameBond compares the settings of a creation; anyID matches every ID.
func sameBond(old, new *interfaces.Interface) bool {
	a, b := bondOf(old), bondOf(new)
	if b.id == anyID {
		b.id = a.id
	}
	return a == b
}

// createBond passes modes unchanged: VPP and the model number them in the same way.
func createBond(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	b := v.GetBond()
	request := &bond.BondCreate2{ID: b.GetId(), Mode: bond.BondMode(b.GetMode()), Lb: bond.BondLbAlgo(b.GetLb())}
	// Otherwise the bond takes the address of its first member.
	if mac, ok := ParseMAC(v.GetPhysAddress()); ok {
		request.UseCustomMac, request.MacAddress = true, mac
	}
	reply := &bond.BondCreate2Reply{}
	err := e.API.Call(ctx, request, reply)
	if errors.Is(err, api.FEATURE_DISABLED) && b.GetMode() == interfaces.BondLink_LACP {
		err = conn.Unimplemented("VPP has not loaded lacp_plugin.so, which a bond of mode LACP needs")
	}
	return uint32(reply.SwIfIndex), err
}

// retrieveBonds lists members, too: they are derived values, which count as lost without
// them. VPP has one dump per bond for that. A member without a name is not ours.
func retrieveBonds(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "bond") {
		return nil
	}
	details, err := conn.Dump[bond.SwBondInterfaceDetails](ctx, e.API, &bond.SwBondInterfaceDump{SwIfIndex: ifindex.All})
	if err != nil {
		return err
	}
	for _, d := range details {
		f := all[uint32(d.SwIfIndex)]
		if f == nil {
			continue
		}
		link := &interfaces.BondLink{Id: d.ID, Mode: interfaces.BondLink_Mode(d.Mode), Lb: interfaces.BondLink_LoadBalance(d.Lb)}
		members, err := conn.Dump[bond.SwMemberInterfaceDetails](ctx, e.API, &bond.SwMemberInterfaceDump{SwIfIndex: d.SwIfIndex})
		if err != nil {
			return err
		}
		for _, m := range members {
			// Members by name: indexes differ after each start of VPP.
			if one := all[uint32(m.SwIfIndex)]; one != nil {
				one.enterBond()
				link.BondedInterfaces = append(link.BondedInterfaces, &interfaces.BondLink_BondedInterface{
					Name: one.Value.GetName(), IsPassive: m.IsPassive, IsLongTimeout: m.IsLongTimeout,
				})
			}
		}
		f.Value.Type, f.Value.Link = interfaces.Interface_BOND_INTERFACE, &interfaces.Interface_Bond{Bond: link}
	}
	return nil
}

// enterBond marks a member of a bond. VPP gives its bond's MAC address to it, and its own one back
// when it leaves (VPP bonding/cli.c, bond_add_member). So the declared address, which it has then,
// is no difference.
func (f *Found) enterBond() {
	f.Bonded = true
	if mac := f.Desired.GetPhysAddress(); mac != "" {
		f.Value.PhysAddress = mac
	}
}

package iface

import (
	"context"
	"errors"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// anyID has VPP choose the ID of a bond.
const anyID = ^uint32(0)

// bondKind is the kind of BOND_INTERFACE. Its members are derived.
func bondKind() kind {
	return kind{
		link:     "bond",
		validate: validateBond,
		sameLink: sameBond,
		marked:   func(_ *handler, _ *found, v *interfaces.Interface) bool { return v.GetBond().GetId() != anyID },
		anew:     true,
		create:   createBond,
		delete: func(ctx context.Context, h *handler, _ *interfaces.Interface, meta Meta) error {
			return h.API.Call(ctx, &bond.BondDelete{SwIfIndex: meta.SwIfIndex()}, &bond.BondDeleteReply{})
		},
		retrieve: retrieveBonds,
	}
}

func validateBond(f *findings, v *interfaces.Interface) {
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

// A bondLink is what a bond is made with.
type bondLink struct {
	id   uint32
	mode interfaces.BondLink_Mode
	lb   interfaces.BondLink_LoadBalance
}

// bondOf: how the load is spread is a choice with two modes; the others have one way.
func bondOf(v *interfaces.Interface) bondLink {
	b := v.GetBond()
	out := bondLink{id: b.GetId(), mode: b.GetMode()}
	if b.GetMode() == interfaces.BondLink_XOR || b.GetMode() == interfaces.BondLink_LACP {
		out.lb = b.GetLb()
	}
	return out
}

// sameBond compares what bonds are made with; any ID is that which it has.
func sameBond(old, new *interfaces.Interface) bool {
	a, b := bondOf(old), bondOf(new)
	if b.id == anyID {
		b.id = a.id
	}
	return a == b
}

// createBond: VPP numbers modes as the model does.
func createBond(ctx context.Context, h *handler, v *interfaces.Interface) (uint32, error) {
	b := v.GetBond()
	request := &bond.BondCreate2{ID: b.GetId(), Mode: bond.BondMode(b.GetMode()), Lb: bond.BondLbAlgo(b.GetLb())}
	if mac, ok := parseMAC(v.GetPhysAddress()); ok {
		request.UseCustomMac, request.MacAddress = true, mac
	}
	reply := &bond.BondCreate2Reply{}
	err := h.API.Call(ctx, request, reply)
	return uint32(reply.SwIfIndex), err
}

func retrieveBonds(ctx context.Context, h *handler, all map[uint32]*found) error {
	if !anyOf(all, "bond") {
		return nil
	}
	details, err := conn.Dump[bond.SwBondInterfaceDetails](ctx, h.API, &bond.SwBondInterfaceDump{SwIfIndex: ifindex.All})
	if err != nil {
		return err
	}
	for _, d := range details {
		f := all[uint32(d.SwIfIndex)]
		if f == nil {
			continue
		}
		link := &interfaces.BondLink{Id: d.ID, Mode: interfaces.BondLink_Mode(d.Mode), Lb: interfaces.BondLink_LoadBalance(d.Lb)}
		members, err := conn.Dump[bond.SwMemberInterfaceDetails](ctx, h.API, &bond.SwMemberInterfaceDump{SwIfIndex: d.SwIfIndex})
		if err != nil {
			return err
		}
		for _, m := range members {
			if one := all[uint32(m.SwIfIndex)]; one != nil {
				link.BondedInterfaces = append(link.BondedInterfaces, &interfaces.BondLink_BondedInterface{
					Name: one.value.GetName(), IsPassive: m.IsPassive, IsLongTimeout: m.IsLongTimeout,
				})
			}
		}
		f.value.Type, f.value.Link = interfaces.Interface_BOND_INTERFACE, &interfaces.Interface_Bond{Bond: link}
	}
	return nil
}

// memberDescriptor has interfaces join bonds.
func (h *handler) memberDescriptor() scheduler.Descriptor[*interfaces.BondLink_BondedInterface, struct{}] {
	return scheduler.Descriptor[*interfaces.BondLink_BondedInterface, struct{}]{
		Name:       BondName,
		Prefix:     keys.Bonds,
		Match:      func(key string) bool { _, _, ok := keys.ParseBondMember(key); return ok },
		Connection: h.Southbound,

		Dependencies: func(key string, _ *interfaces.BondLink_BondedInterface) []scheduler.Dependency {
			_, member, _ := keys.ParseBondMember(key)
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.InterfaceKey(member)}}
		},
		Claims: bondMemberClaims,
		Create: h.joinBond,
		Delete: h.leaveBond,
	}
}

func (h *handler) joinBond(ctx context.Context, key string, v *interfaces.BondLink_BondedInterface) (struct{}, error) {
	name, member, _ := keys.ParseBondMember(key)
	to, ok := h.index.Get(name)
	if !ok {
		return struct{}{}, notThere(name)
	}
	meta, ok := h.index.Get(member)
	if !ok {
		return struct{}{}, notThere(member)
	}
	err := h.API.Call(ctx, &bond.BondAddMember{
		SwIfIndex: meta.SwIfIndex(), BondSwIfIndex: to.SwIfIndex(), IsPassive: v.GetIsPassive(), IsLongTimeout: v.GetIsLongTimeout(),
	}, &bond.BondAddMemberReply{})
	if errors.Is(err, api.VALUE_EXIST) {
		return struct{}{}, h.unlessMember(ctx, to, meta, err)
	}
	return struct{}{}, err
}

// unlessMember is err, unless the interface is in just this bond.
func (h *handler) unlessMember(ctx context.Context, to, meta Meta, err error) error {
	members, dumpErr := conn.Dump[bond.SwMemberInterfaceDetails](ctx, h.API, &bond.SwMemberInterfaceDump{SwIfIndex: to.SwIfIndex()})
	for _, m := range members {
		if m.SwIfIndex == meta.SwIfIndex() {
			return nil
		}
	}
	return errors.Join(err, dumpErr)
}

func (h *handler) leaveBond(ctx context.Context, key string, _ *interfaces.BondLink_BondedInterface, _ struct{}) error {
	_, member, _ := keys.ParseBondMember(key)
	meta, ok := h.index.Get(member)
	if !ok {
		return nil
	}
	err := h.API.Call(ctx, &bond.BondDetachMember{SwIfIndex: meta.SwIfIndex()}, &bond.BondDetachMemberReply{})
	if errors.Is(err, api.INVALID_INTERFACE) || errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil // it is in no bond
	}
	return err
}

package iface

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// memberDescriptor adds interfaces to bonds. A member depends on its bond by being derived
// from it, and on the interface that joins. It has no Update: VPP cannot change the
// settings of a member.
func (h *handler) memberDescriptor() scheduler.Descriptor[*interfaces.BondLink_BondedInterface, struct{}] {
	return scheduler.Descriptor[*interfaces.BondLink_BondedInterface, struct{}]{
		Name:   BondName,
		Prefix: keys.Bonds,
		Match:  func(key string) bool { _, _, ok := keys.ParseBondMember(key); return ok },

		Dependencies: func(key string, _ *interfaces.BondLink_BondedInterface) []scheduler.Dependency {
			_, member, _ := keys.ParseBondMember(key)
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(member).Key()}}
		},
		Claims: bondMemberClaims,
		Create: h.joinBond,
		Delete: h.leaveBond,
	}
}

// joinBond adds the interface to the bond. A repeated request is no error. VPP dies of a member
// without a MAC address.
func (h *handler) joinBond(ctx context.Context, key string, v *interfaces.BondLink_BondedInterface) (struct{}, error) {
	name, member, _ := keys.ParseBondMember(key)
	to, ok := h.index.Get(name)
	if !ok {
		return struct{}{}, kinds.NotThere(name)
	}
	meta, ok := h.index.Get(member)
	if !ok {
		return struct{}{}, kinds.NotThere(member)
	}
	if err := kinds.NeedMAC(ctx, h.API, member, meta.SwIfIndex(), "a member of a bond"); err != nil {
		return struct{}{}, err
	}
	err := h.API.Call(ctx, &bond.BondAddMember{
		SwIfIndex: meta.SwIfIndex(), BondSwIfIndex: to.SwIfIndex(), IsPassive: v.GetIsPassive(), IsLongTimeout: v.GetIsLongTimeout(),
	}, &bond.BondAddMemberReply{})
	if errors.Is(err, api.VALUE_EXIST) {
		err = h.memberOf(ctx, key, to, meta, err)
	}
	if err == nil {
		h.bonded.Join(member)
	}
	return struct{}{}, err
}

// memberOf returns why VPP has refused a member with err: nil if the interface is in exactly this bond, and otherwise the
// bond that has it.
func (h *handler) memberOf(ctx context.Context, key string, to, meta Meta, err error) error {
	all, lookErr := conn.Dump[bond.SwBondInterfaceDetails](ctx, h.API, &bond.SwBondInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	for _, b := range all {
		members, lookErr := conn.Dump[bond.SwMemberInterfaceDetails](ctx, h.API, &bond.SwMemberInterfaceDump{SwIfIndex: b.SwIfIndex})
		if lookErr != nil {
			return errors.Join(err, lookErr)
		}
		isIn := slices.ContainsFunc(members, func(m bond.SwMemberInterfaceDetails) bool { return m.SwIfIndex == meta.SwIfIndex() })
		switch {
		case isIn && b.SwIfIndex == to.SwIfIndex():
			return nil
		case isIn:
			name, lookErr := h.nameAt(ctx, b.SwIfIndex)
			return errors.Join(&heldError{bondMemberClaims(key, nil)[0], name, err}, lookErr)
		}
	}
	return err
}

// nameAt returns the name of an interface for people.
func (h *handler) nameAt(ctx context.Context, at interface_types.InterfaceIndex) (string, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: at})
	if err != nil || len(all) == 0 {
		return fmt.Sprintf("with the index %d", at), err
	}
	return nameOf(all[0]), nil
}

// leaveBond removes the interface from its bond; it may have left, or may not exist any
// more.
func (h *handler) leaveBond(ctx context.Context, key string, _ *interfaces.BondLink_BondedInterface, _ struct{}) error {
	_, member, _ := keys.ParseBondMember(key)
	meta, ok := h.index.Get(member)
	if !ok {
		return nil
	}
	err := h.API.Call(ctx, &bond.BondDetachMember{SwIfIndex: meta.SwIfIndex()}, &bond.BondDetachMemberReply{})
	if errors.Is(err, api.INVALID_INTERFACE) || errors.Is(err, api.INVALID_SW_IF_INDEX) {
		err = nil // it is in no bond
	}
	if err == nil {
		err = h.setPostponed(ctx, member, meta)
	}
	if err == nil {
		h.bonded.Leave(member)
	}
	return err
}

// setPostponed sets the MAC address that was declared for an interface while it was in a bond.
func (h *handler) setPostponed(ctx context.Context, name string, meta Meta) error {
	mac, ok := kinds.ParseMAC(h.bonded.Postponed(name))
	if !ok {
		return nil
	}
	err := h.API.Call(ctx, &vppif.SwInterfaceSetMacAddress{SwIfIndex: meta.SwIfIndex(), MacAddress: mac}, &vppif.SwInterfaceSetMacAddressReply{})
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil
	}
	return err
}

// noteBonded brings the members of bonds in line with a dump. A declared address is postponed:
// VPP does not tell whether it has that address for the member.
func (h *handler) noteBonded(all []*kinds.Found) {
	members := map[string]string{}
	for _, f := range all {
		if !f.Bonded {
			continue
		}
		name, k := f.Value.GetName(), h.kindOf(f.Value)
		members[name] = h.bonded.Postponed(name)
		if mac := f.Desired.GetPhysAddress(); mac != "" && !k.NoMAC && !k.CreatedWithMAC {
			members[name] = mac
		}
	}
	h.bonded.Replace(members)
}

// bondMemberClaims let an interface be in one bond only. VPP refuses a second one.
func bondMemberClaims(key string, _ *interfaces.BondLink_BondedInterface) []scheduler.Claim {
	_, name, _ := keys.ParseBondMember(key)
	return []scheduler.Claim{{Resource: "vpp-bonded/" + name, Field: "name", Value: name, Want: "an interface that is in no other bond"}}
}

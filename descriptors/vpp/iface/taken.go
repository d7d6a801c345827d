package iface

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// mostLooked is the number of interfaces whose addresses are read to find the one that is in the way. It bounds
// the time that a failed request takes, which is repeated.
const mostLooked = 256

// A takenError says in words which interface has an address that is in the way of another one. No claim can do that:
// VPP refuses networks that contain each other, and an address that a value refers to comes later.
type takenError struct {
	address netip.Prefix
	holder  string
	has     netip.Prefix
	err     error // VPP's
}

// Error implements error.
func (e *takenError) Error() string {
	if e.has == e.address {
		return fmt.Sprintf("the interface %s has %s; expected an address that no other interface of this VRF has", e.holder, e.has)
	}
	return fmt.Sprintf("the interface %s has %s, whose network is not apart from that of %s; expected a network that no other interface of this VRF has", e.holder, e.has, e.address)
}

// Unwrap returns the error of VPP.
func (e *takenError) Unwrap() error { return e.err }

// takenBy returns why VPP has refused an address with err: nil if the interface has exactly this one, and otherwise the
// interface whose address is in the way.
func (h *handler) takenBy(ctx context.Context, meta Meta, p netip.Prefix, err error) error {
	has, lookErr := h.addressesOf(ctx, meta, p.Addr().Is6())
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	if slices.Contains(has, p) {
		return nil
	}
	all, lookErr := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	table, lookErr := h.tableOf(ctx, meta.SwIfIndex(), p.Addr().Is6())
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	for _, d := range all[:min(len(all), mostLooked)] {
		has, lookErr := h.inTheWay(ctx, d, table, p)
		if lookErr != nil {
			return errors.Join(err, lookErr)
		}
		if has.IsValid() {
			return &takenError{p, nameOf(d), has, err}
		}
	}
	return err
}

// inTheWay returns the address of an interface in a table that VPP does not accept beside p; invalid: there is none.
func (h *handler) inTheWay(ctx context.Context, d vppif.SwInterfaceDetails, table uint32, p netip.Prefix) (netip.Prefix, error) {
	its, err := conn.Dump[ip.IPAddressDetails](ctx, h.API, &ip.IPAddressDump{SwIfIndex: d.SwIfIndex, IsIPv6: p.Addr().Is6()})
	if err != nil {
		return netip.Prefix{}, err
	}
	for _, one := range its {
		has := vppwire.PrefixOf(one.Prefix)
		if !has.IsValid() || !has.Overlaps(p) {
			continue
		}
		if in, err := h.tableOf(ctx, d.SwIfIndex, p.Addr().Is6()); err != nil || in != table {
			return netip.Prefix{}, err
		}
		return has, nil
	}
	return netip.Prefix{}, nil
}

// tableOf returns the table of an interface.
func (h *handler) tableOf(ctx context.Context, index interface_types.InterfaceIndex, ipv6 bool) (uint32, error) {
	its := &vppif.SwInterfaceGetTableReply{}
	err := h.API.Call(ctx, &vppif.SwInterfaceGetTable{SwIfIndex: index, IsIPv6: ipv6}, its)
	return its.VrfID, err
}

// nameOf returns the name of an interface for people: that of its value, or VPP's of one that has none.
func nameOf(d vppif.SwInterfaceDetails) string {
	if d.Tag != "" {
		return d.Tag
	}
	return d.InterfaceName
}

// A heldError says in words which interface has what VPP gives to one interface only. Among declared interfaces a claim
// says so before VPP is asked; this is about interfaces of others.
type heldError struct {
	claim  scheduler.Claim
	holder string
	err    error // VPP's
}

// Error implements error.
func (e *heldError) Error() string {
	return fmt.Sprintf("%s is %v, which the interface %s has; expected %s", e.claim.Field, e.claim.Value, e.holder, e.claim.Want)
}

// Unwrap returns the error of VPP.
func (e *heldError) Unwrap() error { return e.err }

// isHeld reports whether an error of VPP says that another interface has what a new one needs.
func isHeld(err error) bool {
	for _, is := range []api.VPPApiError{api.VLAN_ALREADY_EXISTS, api.SUBIF_ALREADY_EXISTS, api.TUNNEL_EXIST, api.IF_ALREADY_EXISTS, api.INSTANCE_IN_USE} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// heldBy returns err, or in words which interface has what v needs. It reads all interfaces, as VPP says of none of them;
// of an AF_PACKET interface it does, see kinds.
func (h *handler) heldBy(ctx context.Context, v *interfaces.Interface, err error) error {
	claims := kinds.Claims("", v)
	if !isHeld(err) || len(claims) == 0 || v.GetType() == interfaces.Interface_AF_PACKET {
		return err
	}
	all, lookErr := h.dump(ctx, nil, nil, false)
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	for _, f := range all {
		for _, c := range kinds.Claims("", f.Value) {
			if c.Resource == claims[0].Resource {
				return &heldError{claims[0], f.Value.GetName(), err}
			}
		}
	}
	return err
}

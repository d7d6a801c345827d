package l3

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// vrrpDescriptor implements virtual routers (VRRP version 3, RFC 5798).
func (h handler) vrrpDescriptor() scheduler.Descriptor[*l3.VRRPEntry, struct{}] {
	return scheduler.Descriptor[*l3.VRRPEntry, struct{}]{
		Name:  VRRPName,
		Model: models.For[*l3.VRRPEntry](),

		Validate: validateVRRP,
		Equivalent: func(_ string, old, new *l3.VRRPEntry) bool {
			return sameRouter(old, new) && old.GetEnabled() == new.GetEnabled()
		},
		Recreate:     func(_ string, old, new *l3.VRRPEntry, _ struct{}) bool { return !sameRouter(old, new) },
		Dependencies: h.vrrpDependencies,
		Claims:       vrrpClaims,

		Create: h.createVRRP,
		Update: func(ctx context.Context, _ string, _, v *l3.VRRPEntry, _ struct{}) (struct{}, error) {
			return struct{}{}, h.startVRRP(ctx, v, v.GetEnabled())
		},
		Delete: func(ctx context.Context, _ string, v *l3.VRRPEntry, _ struct{}) error {
			return h.deleteVRRP(ctx, v)
		},
		Retrieve:      h.routers().Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

const (
	maxAddresses  = 255 // VPP vrrp.api, u8
	ownerPriority = 255 // priority of the router that owns the addresses (RFC 5798)
)

// validateVRRP checks a virtual router.
func validateVRRP(_ string, v *l3.VRRPEntry) error {
	var f faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	if n := len(v.GetIpAddresses()); n == 0 || n > maxAddresses {
		f.Add("ip_addresses", n, "from 1 to 255 addresses")
	}
	for i, text := range v.GetIpAddresses() {
		field := fmt.Sprintf("ip_addresses[%d]", i)
		f.address(field, text)
		if a, err := netip.ParseAddr(text); err == nil && a.Is6() != isIPv6Router(v) {
			f.Add(field, text, "an address of the same IP version as the others")
		}
	}
	if v.GetUnicast() && v.GetEnabled() {
		f.Add("unicast", true, "false for a router that is enabled: VPP starts a unicast router only with the addresses of its peers, which the model does not have")
	}
	return f.Err()
}

// vrrpClaims claims the addresses on the interface: VPP refuses one that another router of it has.
func vrrpClaims(_ string, v *l3.VRRPEntry) (out []scheduler.Claim) {
	known := map[string]bool{}
	for i, text := range v.GetIpAddresses() {
		if is := canonical(text); !known[is] {
			known[is] = true
			out = append(out, scheduler.Claim{
				Resource: fmt.Sprintf("vpp-vrrp/%s/%s", v.GetInterface(), is), Field: fmt.Sprintf("ip_addresses[%d]", i), Value: text,
				Want: "an address that no other virtual router of this interface has",
			})
		}
	}
	return out
}

// isIPv6Router returns the IP version of the first valid address. validateVRRP ensures that
// all are equal.
func isIPv6Router(v *l3.VRRPEntry) bool {
	for _, text := range v.GetIpAddresses() {
		if a, err := netip.ParseAddr(text); err == nil {
			return a.Is6()
		}
	}
	return false
}

// sameRouter compares the settings that VPP cannot change. Intervals that differ by less
// than VPP's unit are equal.
func sameRouter(old, new *l3.VRRPEntry) bool {
	return old.GetInterface() == new.GetInterface() && old.GetVrId() == new.GetVrId() &&
		old.GetPriority() == new.GetPriority() && old.GetInterval()/10 == new.GetInterval()/10 &&
		old.GetPreempt() == new.GetPreempt() && old.GetAccept() == new.GetAccept() && old.GetUnicast() == new.GetUnicast() &&
		slices.Equal(addressesOf(old), addressesOf(new))
}

// addressesOf returns the addresses in canonical notation, sorted and without duplicates.
func addressesOf(v *l3.VRRPEntry) []string {
	var out []string
	for _, text := range v.GetIpAddresses() {
		out = append(out, canonical(text))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// vrrpDependencies requires the interface. The owner's addresses must also be on it, because
// VPP refuses an owner without them. A router that is to run requires any address.
func (h handler) vrrpDependencies(_ string, v *l3.VRRPEntry) []scheduler.Dependency {
	deps := []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetInterface()).Key()}}
	if v.GetPriority() == ownerPriority {
		for _, address := range addressesOf(v) {
			deps = append(deps, scheduler.Dependency{
				Label: "interface-has-address-" + address, Prefixes: []string{keys.Interface(v.GetInterface()).Addresses()},
				Match: func(key string) bool { return h.addressAt(key).String() == address },
			})
		}
	} else if v.GetEnabled() {
		deps = append(deps, h.anyAddress(keys.Interface(v.GetInterface()), isIPv6Router(v)))
	}
	return deps
}

// anyAddress requires an address of the router's IP version on its interface, be it borrowed. A
// router that VPP starts before takes the interface for one that is down, and never learns better:
// VPP only looks again when the interface goes down and up (vrrp.c, vrrp_sw_interface_up_down).
func (h handler) anyAddress(i keys.Interface, ipv6 bool) scheduler.Dependency {
	label, borrowed, autoconfigured := "interface-has-IPv4-address", i.Unnumbered(), ""
	if ipv6 {
		label, autoconfigured = "interface-has-IPv6-address", i.IP6ND()
	}
	return scheduler.Dependency{
		Label: label, Prefixes: []string{i.Addresses(), borrowed, i.IP6ND()},
		Match: func(key string) bool {
			a := h.addressAt(key)
			return key == borrowed || key == autoconfigured || a.IsValid() && a.Is6() == ipv6
		},
	}
}

// addressAt returns the address of the key of an interface's address; other keys have none.
func (h handler) addressAt(key string) netip.Addr {
	a, ok := keys.ParseAddress(key)
	if !ok {
		return netip.Addr{}
	}
	p, err := netip.ParsePrefix(alloc.Address(h.Allocations, a.Addr, a.Interface))
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}

// createVRRP creates a router and starts it if enabled. An existing router with the same
// number is replaced, because it may have other settings.
func (h handler) createVRRP(ctx context.Context, _ string, v *l3.VRRPEntry) (struct{}, error) {
	err := h.addVRRP(ctx, v)
	// For example one of a former life of the agent, which was not read back.
	if errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
		err = errors.Join(h.deleteVRRP(ctx, v), h.addVRRP(ctx, v))
	}
	if err != nil || !v.GetEnabled() {
		return struct{}{}, err
	}
	// A router that is not started must not stay: a retry would find it with these
	// settings.
	if err := h.startVRRP(ctx, v, true); err != nil {
		return struct{}{}, errors.Join(err, h.deleteVRRP(ctx, v))
	}
	return struct{}{}, nil
}

// deleteVRRP stops and deletes a router. A router that is deleted while it runs leaves its
// virtual MAC address on the interface.
func (h handler) deleteVRRP(ctx context.Context, v *l3.VRRPEntry) error {
	return h.cleanUp(ctx, v.GetInterface(), h.vrrpCleanup(v))
}

// vrrpCleanup returns the deletion of a router. It checks the interface first: VPP would
// access the MAC address of an interface that does not exist.
func (h handler) vrrpCleanup(v *l3.VRRPEntry) cleanup {
	return cleanup{fmt.Sprint("router ", v.GetVrId(), isIPv6Router(v)), func(ctx context.Context, at interface_types.InterfaceIndex) error {
		exists, err := h.interfaceExists(ctx, at)
		if err == nil && !exists {
			err = api.INVALID_SW_IF_INDEX
		}
		if err == nil {
			err = h.startAt(ctx, at, v, false)
		}
		if err == nil {
			err = h.changeVRRP(ctx, at, v, false)
		}
		if errors.Is(err, api.NO_SUCH_ENTRY) {
			return nil
		}
		return err
	}}
}

// addVRRP creates a router that is stopped.
func (h handler) addVRRP(ctx context.Context, v *l3.VRRPEntry) error {
	meta, err := h.interfaceNamed(v.GetInterface())
	if err != nil {
		return err
	}
	return h.changeVRRP(ctx, meta.SwIfIndex(), v, true)
}

// changeVRRP creates or deletes a router (VPP vrrp_vr_add_del).
func (h handler) changeVRRP(ctx context.Context, at interface_types.InterfaceIndex, v *l3.VRRPEntry, add bool) error {
	request := &vrrp.VrrpVrAddDel{
		SwIfIndex: at, VrID: uint8(v.GetVrId()), Priority: uint8(v.GetPriority()), Interval: uint16(v.GetInterval() / 10),
	}
	if add {
		request.IsAdd = 1
	}
	for bit, on := range map[vrrp.VrrpVrFlags]bool{
		vrrp.VRRP_API_VR_PREEMPT: v.GetPreempt(), vrrp.VRRP_API_VR_ACCEPT: v.GetAccept(),
		vrrp.VRRP_API_VR_UNICAST: v.GetUnicast(), vrrp.VRRP_API_VR_IPV6: isIPv6Router(v),
	} {
		if on {
			request.Flags |= bit
		}
	}
	for _, text := range addressesOf(v) {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		request.Addrs = append(request.Addrs, vppwire.Address(a))
	}
	return h.API.Call(ctx, request, &vrrp.VrrpVrAddDelReply{})
}

// greDevice is VPP's device class of GRE tunnels and of their sub-interfaces.
const greDevice = "GRE tunnel device"

// startVRRP starts or stops a router. VPP accepts a router that is in that state already. On a GRE
// tunnel for IP packets it dies once the router sends advertisements. Other tunnels without a MAC
// address do no harm (25.10).
func (h handler) startVRRP(ctx context.Context, v *l3.VRRPEntry, start bool) error {
	meta, err := h.interfaceNamed(v.GetInterface())
	if err == nil && start && meta.DevType == greDevice {
		err = iface.NeedMAC(ctx, h.API, v.GetInterface(), meta, "a virtual router on a GRE tunnel")
	}
	if err != nil {
		return err
	}
	return h.startAt(ctx, meta.SwIfIndex(), v, start)
}

// startAt is startVRRP for an interface index (VPP vrrp_vr_start_stop).
func (h handler) startAt(ctx context.Context, at interface_types.InterfaceIndex, v *l3.VRRPEntry, start bool) error {
	request := &vrrp.VrrpVrStartStop{SwIfIndex: at, VrID: uint8(v.GetVrId())}
	if isIPv6Router(v) {
		request.IsIPv6 = 1
	}
	if start {
		request.IsStart = 1
	}
	return h.API.Call(ctx, request, &vrrp.VrrpVrStartStopReply{})
}

// routers reads virtual routers back, and notes those of deleted interfaces if the read learns.
func (h handler) routers() readback.Retriever[*l3.VRRPEntry] {
	return readback.Retriever[*l3.VRRPEntry]{
		Read: func(ctx context.Context, learns bool) (out []*l3.VRRPEntry, err error) {
			all, err := conn.Dump[vrrp.VrrpVrDetails](ctx, h.API, &vrrp.VrrpVrDump{SwIfIndex: interface_types.InterfaceIndex(noInterface)})
			names := h.namesByIndex()
			for _, d := range all {
				v := routerOf(d)
				v.Interface = names[uint32(d.Config.SwIfIndex)]
				if v.Interface != "" {
					out = append(out, v)
				} else if learns {
					if err := h.noteOrphaned(ctx, d.Config.SwIfIndex, h.vrrpCleanup(v)); err != nil {
						return nil, err
					}
				}
			}
			return out, err
		},
		ID: func(v *l3.VRRPEntry) string { return fmt.Sprint(v.GetInterface(), " ", v.GetVrId()) },
	}
}

// routerOf converts VPP's answer to a value without its interface. Every state except INIT
// counts as enabled.
func routerOf(d vrrp.VrrpVrDetails) *l3.VRRPEntry {
	has := func(bit vrrp.VrrpVrFlags) bool { return d.Config.Flags&bit != 0 }
	v := &l3.VRRPEntry{
		VrId: uint32(d.Config.VrID), Priority: uint32(d.Config.Priority), Interval: uint32(d.Config.Interval) * 10,
		Preempt: has(vrrp.VRRP_API_VR_PREEMPT), Accept: has(vrrp.VRRP_API_VR_ACCEPT), Unicast: has(vrrp.VRRP_API_VR_UNICAST),
		Enabled: d.Runtime.State != vrrp.VRRP_API_VR_STATE_INIT,
	}
	for _, a := range d.Addrs {
		v.IpAddresses = append(v.IpAddresses, vppwire.Addr(a).String())
	}
	return v
}

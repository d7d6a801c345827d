package l3

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// proxyDescriptor implements the address ranges of proxy ARP. The interfaces are derived
// values: one that is missing must not delay the ranges. All ranges are one value, because
// the model has one key for them.
func (h handler) proxyDescriptor() scheduler.Descriptor[*l3.ProxyARP, struct{}] {
	return scheduler.Descriptor[*l3.ProxyARP, struct{}]{
		Name:  ProxyARPName,
		Model: models.For[*l3.ProxyARP](),

		Validate:     validateProxy,
		Equivalent:   equivalentProxy,
		Dependencies: proxyDependencies,
		Derived:      proxyInterfaces,

		Create: func(ctx context.Context, _ string, v *l3.ProxyARP) (struct{}, error) {
			return struct{}{}, h.changeRanges(ctx, nil, rangesOf(v))
		},
		Update: func(ctx context.Context, _ string, old, new *l3.ProxyARP, _ struct{}) (struct{}, error) {
			return struct{}{}, h.changeRanges(ctx, rangesOf(old), rangesOf(new))
		},
		Delete: func(ctx context.Context, _ string, v *l3.ProxyARP, _ struct{}) error {
			return h.changeRanges(ctx, rangesOf(v), nil)
		},
		Retrieve:      h.retrieveProxy,
		RetrieveAfter: []string{iface.Name},
	}
}

// validateProxy checks ranges and interfaces. VPP supports proxy ARP for IPv4 only.
func validateProxy(_ string, v *l3.ProxyARP) error {
	var f faults
	for i, r := range v.GetRanges() {
		field := fmt.Sprintf("ranges[%d].", i)
		first, errFirst := netip.ParseAddr(r.GetFirstIpAddr())
		last, errLast := netip.ParseAddr(r.GetLastIpAddr())
		f.table(field+"vrf_id", r.GetVrfId())
		if errFirst != nil || !first.Is4() {
			f.Add(field+"first_ip_addr", r.GetFirstIpAddr(), `an IPv4 address, such as "10.0.0.1"`)
		}
		switch {
		case errLast != nil || !last.Is4():
			f.Add(field+"last_ip_addr", r.GetLastIpAddr(), `an IPv4 address, such as "10.0.0.9"`)
		case errFirst == nil && last.Less(first):
			f.Add(field+"last_ip_addr", r.GetLastIpAddr(), "no lower address than first_ip_addr")
		}
	}
	for i, one := range v.GetInterfaces() {
		if one.GetName() == "" {
			f.Add(fmt.Sprintf("interfaces[%d].name", i), "", "the name of an interface")
		}
	}
	return f.Err()
}

// rangesOf returns the ranges in VPP's form, without duplicates.
func rangesOf(v *l3.ProxyARP) []arp.ProxyArp {
	var out []arp.ProxyArp
	for _, r := range v.GetRanges() {
		first, errFirst := netip.ParseAddr(r.GetFirstIpAddr())
		last, errLast := netip.ParseAddr(r.GetLastIpAddr())
		if errFirst != nil || errLast != nil || !first.Is4() || !last.Is4() {
			continue
		}
		out = append(out, arp.ProxyArp{TableID: r.GetVrfId(), Low: first.As4(), Hi: last.As4()})
	}
	return lists.Unique(out)
}

// equivalentProxy ignores order and duplicates of ranges. The interfaces are derived values
// with their own comparison.
func equivalentProxy(_ string, old, new *l3.ProxyARP) bool {
	a, b := rangesOf(old), rangesOf(new)
	return len(lists.Without(a, b)) == 0 && len(lists.Without(b, a)) == 0
}

// proxyDependencies requires the tables of the ranges. Table 0 always exists.
func proxyDependencies(_ string, v *l3.ProxyARP) (deps []scheduler.Dependency) {
	// A table that several ranges name is one dependency.
	added := map[uint32]bool{0: true}
	for _, r := range v.GetRanges() {
		if !added[r.GetVrfId()] {
			added[r.GetVrfId()] = true
			deps = append(deps, scheduler.Dependency{Label: fmt.Sprintf("vrf-table-%d-exists", r.GetVrfId()), Key: keys.VRFTable(r.GetVrfId(), false)})
		}
	}
	return deps
}

// proxyInterfaces derives the interfaces that answer ARP requests.
func proxyInterfaces(_ string, v *l3.ProxyARP) []scheduler.KeyValue {
	var out []scheduler.KeyValue
	for _, one := range v.GetInterfaces() {
		out = append(out, scheduler.KeyValue{Key: keys.Interface(one.GetName()).ProxyARP(), Value: one})
	}
	return out
}

// changeRanges deletes the ranges that new lacks and adds those that old lacks. VPP answers
// NO_SUCH_ENTRY or NO_SUCH_FIB for a range that is gone.
func (h handler) changeRanges(ctx context.Context, old, new []arp.ProxyArp) error {
	change := func(r arp.ProxyArp, add bool) error {
		return h.API.Call(ctx, &arp.ProxyArpAddDel{IsAdd: add, Proxy: r}, &arp.ProxyArpAddDelReply{})
	}
	for _, r := range lists.Without(old, new) {
		if err := change(r, false); err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) && !errors.Is(err, api.NO_SUCH_FIB) {
			return err
		}
	}
	for _, r := range lists.Without(new, old) {
		if err := change(r, true); err != nil {
			return err
		}
	}
	return nil
}

// retrieveProxy yields one value with all ranges and interfaces, or none if VPP has neither.
// VPP records no owner: the state belongs to the agent if a value is declared.
func (h handler) retrieveProxy(ctx context.Context, wanted []scheduler.Desired[*l3.ProxyARP]) scheduler.Retrieved[*l3.ProxyARP, struct{}] {
	type found = scheduler.Found[*l3.ProxyARP, struct{}]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		ranges, err := conn.Dump[arp.ProxyArpDetails](ctx, h.API, &arp.ProxyArpDump{})
		if err != nil {
			yield(found{}, err)
			return
		}
		v := &l3.ProxyARP{}
		v.Interfaces, err = h.readProxyInterfaces(ctx, learns)
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, d := range ranges {
			v.Ranges = append(v.Ranges, &l3.ProxyARP_Range{
				FirstIpAddr: netip.AddrFrom4(d.Proxy.Low).String(), LastIpAddr: netip.AddrFrom4(d.Proxy.Hi).String(), VrfId: d.Proxy.TableID,
			})
		}
		// VPP always has the feature. Without ranges and interfaces it belongs to nobody: an empty value of ours
		// would count as one that the agent must remove.
		if empty := proto.Equal(v, &l3.ProxyARP{}); !empty {
			yield(found{Value: v, OwnerUnknown: len(wanted) == 0, Details: &proxying{h.indexesOf(v)}}, nil)
		} else if len(wanted) == 0 {
			yield(found{Value: v, Foreign: true}, nil)
		}
	})
}

// proxying has the indexes of the interfaces with proxy ARP, by name.
type proxying struct{ Interfaces map[string]uint32 }

// indexesOf returns the indexes of the interfaces of a value.
func (h handler) indexesOf(v *l3.ProxyARP) map[string]uint32 {
	out := make(map[string]uint32, len(v.GetInterfaces()))
	for _, one := range v.GetInterfaces() {
		meta, _ := h.Interfaces.Get(one.GetName())
		out[one.GetName()] = meta.Index
	}
	return out
}

// readProxyInterfaces returns the interfaces with proxy ARP, and notes those that were deleted if the read
// learns.
func (h handler) readProxyInterfaces(ctx context.Context, learns bool) (out []*l3.ProxyARP_Interface, err error) {
	all, err := conn.Dump[arp.ProxyArpIntfcDetails](ctx, h.API, &arp.ProxyArpIntfcDump{})
	names := h.namesByIndex()
	for _, d := range all {
		at, name := interface_types.InterfaceIndex(d.SwIfIndex), names[d.SwIfIndex]
		switch {
		case name == "" && !learns:
			continue
		case name == "":
			if err := h.noteOrphaned(ctx, at, h.proxyARPCleanup()); err != nil {
				return nil, err
			}
			continue
		case learns:
			h.noteCleanup(at, name, h.proxyARPCleanup())
		}
		out = append(out, &l3.ProxyARP_Interface{Name: name})
	}
	return out, err
}

// proxyInterfaceDescriptor implements proxy ARP on one interface.
func (h handler) proxyInterfaceDescriptor() scheduler.Descriptor[*l3.ProxyARP_Interface, struct{}] {
	return scheduler.Descriptor[*l3.ProxyARP_Interface, struct{}]{
		Name:   ProxyARPInterfaceName,
		Prefix: keys.ProxyARPs,

		Dependencies: func(key string, _ *l3.ProxyARP_Interface) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(key[len(keys.ProxyARPs):]).Key()}}
		},
		Create: func(ctx context.Context, _ string, v *l3.ProxyARP_Interface) (struct{}, error) {
			return struct{}{}, h.enableProxy(ctx, v.GetName())
		},
		Delete: func(ctx context.Context, _ string, v *l3.ProxyARP_Interface, _ struct{}) error {
			return h.cleanUp(ctx, v.GetName(), h.proxyARPCleanup())
		},
	}
}

// enableProxy enables proxy ARP on an interface and notes its cleanup.
func (h handler) enableProxy(ctx context.Context, name string) error {
	meta, err := h.interfaceNamed(name)
	if err != nil {
		return err
	}
	// Noted before: VPP may have it although the connection breaks before the answer.
	h.noteCleanup(meta.SwIfIndex(), name, h.proxyARPCleanup())
	return h.setProxy(ctx, meta.SwIfIndex(), true)
}

// setProxy enables or disables proxy ARP (VPP proxy_arp_intfc_enable_disable).
func (h handler) setProxy(ctx context.Context, at interface_types.InterfaceIndex, on bool) error {
	return h.API.Call(ctx, &arp.ProxyArpIntfcEnableDisable{SwIfIndex: at, Enable: on}, &arp.ProxyArpIntfcEnableDisableReply{})
}

// proxyARPCleanup returns the deactivation of proxy ARP. VPP keeps the flag when the
// interface is deleted. For the next interface with the index it then skips the activation
// (VPP arp_proxy.c, arp_proxy_enable).
func (h handler) proxyARPCleanup() cleanup {
	return cleanup{"proxy ARP", func(ctx context.Context, at interface_types.InterfaceIndex) error { return h.setProxy(ctx, at, false) }}
}

package nat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
)

// noInterface is the interface of a mapping by address (~0).
const noInterface = ^interface_types.InterfaceIndex(0)

// dnatDescriptor implements mappings. A value is the set of mappings with its label in their tag.
// In the endpoint-dependent plugin, they translate only what comes from outside: the destination of
// packets is translated, so several external sides can lead to one local side.
func (h *handler) dnatDescriptor() scheduler.Descriptor[*nat.DNat44, struct{}] {
	return scheduler.Descriptor[*nat.DNat44, struct{}]{
		Name:  DNATName,
		Model: models.For[*nat.DNat44](),

		Normalize: normalizeDNAT,
		Validate:  validateDNAT,
		Equivalent: func(_ string, old, new *nat.DNat44) bool {
			return old.GetLabel() == new.GetLabel() && maps.Equal(lists.Set(mappingsOf(old)), lists.Set(mappingsOf(new)))
		},
		Recreate:     func(_ string, old, new *nat.DNat44, _ struct{}) bool { return old.GetLabel() != new.GetLabel() },
		Dependencies: dnatDependencies,
		Claims:       dnatClaims,

		Create: func(ctx context.Context, key string, v *nat.DNat44) (struct{}, error) {
			return struct{}{}, h.createDNATs(ctx, []scheduler.Desired[*nat.DNat44]{{Key: key, Value: v}})[0].Err
		},
		CreateAll: h.createDNATs,
		Update: func(ctx context.Context, _ string, old, v *nat.DNat44, _ struct{}) (struct{}, error) {
			return struct{}{}, h.updateDNAT(ctx, old, v)
		},
		Delete: func(ctx context.Context, _ string, v *nat.DNat44, _ struct{}) error {
			p, err := h.inUse(ctx)
			if errors.Is(err, ErrDisabled) {
				return nil // VPP forgets the mappings of a plugin that is disabled
			}
			if err != nil {
				return err
			}
			return h.remove(ctx, p, mappingsOf(v))
		},
		Retrieve:      h.retrieveDNATs,
		RetrieveAfter: []string{iface.Name, GlobalName},
	}
}

// named has what the mappings of a value name.
type named struct {
	links []string
	vrfs  []uint32
	pools []netip.Addr // of twice-NAT
	// external are the external addresses of mappings with ports, as they are spelled.
	external []string
	// dependent: one of the mappings needs the endpoint-dependent plugin.
	dependent bool
}

// namedBy returns the names in a valid value. It mostly reads no other fields: a value is converted
// to mappings often enough.
func namedBy(v *nat.DNat44) (n named) {
	for _, s := range v.GetStMappings() {
		n.add(s.GetExternalInterface(), 0)
		for _, l := range s.GetLocalIps() {
			n.add("", l.GetVrfId())
		}
		n.pools = appendAddr(n.pools, s.GetTwiceNatPoolIp())
		n.dependent = n.dependent || len(s.GetLocalIps()) > 1 || s.GetTwiceNat() != nat.DNat44_StaticMapping_DISABLED
		if s.GetExternalPort() != 0 {
			n.external = append(n.external, s.GetExternalIp())
		}
	}
	for _, d := range v.GetIdMappings() {
		n.add(d.GetInterface(), d.GetVrfId())
		if d.GetPort() != 0 {
			n.external = append(n.external, d.GetIpAddress())
		}
	}
	n.dependent = n.dependent || len(n.links) > 0 || len(v.GetIdMappings()) > 1 && sharePort(mappingsOf(v))
	return n
}

// sharePort tells whether an identity mapping with a port has several VRFs. The
// endpoint-independent plugin would reserve the port once, and free it once for each of them
// (nat44_ei_del_static_mapping_internal). The number of used ports of the address then falls below
// 0, that is to a very large one, and VPP takes all ports for used: it translates no other
// connections to the address.
func sharePort(all []mapping) bool {
	if len(all) < 2 { // as most values
		return false
	}
	seen := make(map[place]bool, len(all))
	for _, m := range all {
		if m.identity && m.port != 0 {
			if seen[m.place] {
				return true
			}
			seen[m.place] = true
		}
	}
	return false
}

// add adds an interface and a VRF. An empty name and VRF 0 need nothing.
func (n *named) add(link string, vrf uint32) {
	if link != "" {
		n.links = append(n.links, link)
	}
	if vrf != 0 {
		n.vrfs = append(n.vrfs, vrf)
	}
}

// appendAddr appends an address; empty: none.
func appendAddr(all []netip.Addr, text string) []netip.Addr {
	if text == "" {
		return all
	}
	addr, err := netip.ParseAddr(text)
	if err == nil {
		all = append(all, addr)
	}
	return all
}

// inPool requires a pool with these external addresses, unless NAT44 is endpoint-dependent. The
// endpoint-independent plugin reserves a mapping's port in the pool. It refuses the mapping
// without the address (nat44_ei_reserve_port), and then the removal of the address while the
// mapping is there. Any pool will do: VPP ignores its VRF. One dependency for each address would
// make thousands of mappings slower by a half, so one pool must have all of them.
func inPool(external []string) scheduler.Dependency {
	return scheduler.Dependency{
		Label:    "pool-has-external-addresses-or-nat44-is-endpoint-dependent",
		Prefixes: []string{keys.NATParts}, // one costs less than several, and few keys have it
		Match: func(key string) bool {
			if key == keys.NATEndpointDependent {
				return true
			}
			pool, ok := keys.ParseNATPool(key)
			if listed, isTwice, is := keys.ParseNATAddress(key); is && !isTwice {
				addr, err := netip.ParseAddr(listed)
				pool, ok = keys.NATPool{First: addr}, err == nil
			}
			return ok && !pool.Twice && !slices.ContainsFunc(external, func(text string) bool {
				addr, err := netip.ParseAddr(text)
				return err != nil || !pool.Has(addr)
			})
		},
	}
}

// dnatDependencies requires the interfaces, VRFs and pools that mappings name, and the kind of
// NAT44 that serves them.
func dnatDependencies(_ string, v *nat.DNat44) []scheduler.Dependency {
	by := namedBy(v)
	out := append(make([]scheduler.Dependency, 0, 2), enabledFor(by.dependent)) // most have two
	if !by.dependent && len(by.external) > 0 {
		out = append(out, inPool(by.external))
	}
	// The scheduler requires unique labels, and many mappings share a VRF or an interface.
	for _, name := range unique(by.links, strings.Compare) {
		out = append(out, scheduler.Dependency{Label: "interface-exists-" + name, Key: keys.Interface(name).Key()})
	}
	for _, id := range unique(by.vrfs, cmp.Compare) {
		out = append(out, vrfExists("vrf-table-exists-"+strconv.FormatUint(uint64(id), 10), id)...)
	}
	pools := unique(by.pools, netip.Addr.Compare)
	for _, pool := range pools {
		label := "reference-to-twiceNATPoolIP"
		if len(pools) > 1 {
			label += "-" + pool.String()
		}
		out = append(out, scheduler.Dependency{
			Label: label, Prefixes: []string{keys.TwiceNATPools},
			Match: func(key string) bool { p, ok := keys.ParseNATPool(key); return ok && p.Has(pool) },
		})
	}
	return out
}

// unique sorts a list and leaves each element once. It reuses the memory of the list.
func unique[T comparable](all []T, compare func(a, b T) int) []T {
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}

// dnatClaims claims the external sides: VPP has one mapping of each. An identity mapping of
// several VRFs has one tag, so all of them belong to one value. Without the claim, the second
// value would fail with VALUE_EXIST, which does not name the first.
func dnatClaims(_ string, v *nat.DNat44) []scheduler.Claim {
	all := appendMappings(make([]mapping, 0, few), v)
	out := make([]scheduler.Claim, 0, len(all))
	seen := map[place]bool{} // of identity mappings, which may have several VRFs
	const of = "vpp-nat44-external/"
	for i, m := range all {
		if m.identity {
			if seen[m.place] {
				continue
			}
			seen[m.place] = true
		}
		resource := string(m.place.appendTo([]byte(of)))
		out = append(out, scheduler.Claim{
			Resource: resource, Field: pathIn(v, i).String(), Value: resource[len(of):],
			Want: "an external address, port and protocol that no other value maps",
		})
	}
	return out
}

// String is the form of errors: "10.0.0.1:80 TCP".
func (p place) String() string { return string(p.appendTo(nil)) }

// appendTo appends the form of errors.
func (p place) appendTo(out []byte) []byte {
	switch {
	case p.link != "":
		out = append(out, p.link...)
	case p.addr.IsValid():
		out = p.addr.AppendTo(out)
	}
	if p.port == 0 {
		return out
	}
	protocol, _ := protocolOf(p.protocol)
	out = strconv.AppendUint(append(out, ':'), uint64(p.port), 10)
	return append(append(out, ' '), nat.DNat44_Protocol_name[int32(protocol)]...)
}

// createDNATs makes the mappings of several values with one batch. VPP refuses a mapping whose
// external side it has; then VPP's mappings of that value are read and brought to the declared
// ones. The result has the order of values. One batch costs one round trip, so a resync of
// thousands of values does not wait for each. A refused value does not affect the others.
func (h *handler) createDNATs(ctx context.Context, values []scheduler.Desired[*nat.DNat44]) []scheduler.Created[struct{}] {
	out := make([]scheduler.Created[struct{}], len(values))
	steps := make([][]*conn.Step, len(values))
	p, errPlugin := h.inUse(ctx)
	var all []*conn.Step
	for i, w := range values {
		if out[i].Err = errPlugin; errPlugin != nil {
			continue
		}
		steps[i], out[i].Err = h.steps(p, w.Value.GetLabel(), appendMappings(make([]mapping, 0, few), w.Value), true)
		all = append(all, steps[i]...)
	}
	_ = h.API.Batch(ctx, all...) // each step has its error
	for i, w := range values {
		if out[i].Err == nil {
			out[i].Err = h.added(ctx, p, w.Value, steps[i])
		}
	}
	return out
}

// added returns the error of steps that add mappings of a value.
func (h *handler) added(ctx context.Context, p plugin, v *nat.DNat44, steps []*conn.Step) error {
	for _, s := range steps {
		// Mostly left over from an interrupted Create. If another label has it, repair
		// fails.
		if errors.Is(s.Err, api.VALUE_EXIST) {
			return h.repair(ctx, p, v)
		}
		if s.Err != nil {
			return s.Err
		}
	}
	return nil
}

// repair reads VPP's mappings of a value, and brings them to the declared ones. Stale mappings
// are removed first, since one of them may occupy a declared external side. The error is that
// of the first refused request, or names the mapping that is in the way.
func (h *handler) repair(ctx context.Context, p plugin, v *nat.DNat44) error {
	wanted := mappingsOf(v)
	read, err := h.readMappings(ctx, p, map[string]map[mapping]bool{v.GetLabel(): lists.Set(wanted)}, true)
	if err != nil {
		return err
	}
	has := read.all[v.GetLabel()]
	if err := h.remove(ctx, p, lists.Without(has, wanted)); err != nil {
		return err
	}
	lacking := lists.Without(wanted, has)
	err = h.add(ctx, p, v.GetLabel(), lacking)
	if errors.Is(err, api.VALUE_EXIST) {
		return h.takenBy(ctx, p, v.GetLabel(), lacking, err)
	}
	return err
}

// updateDNAT removes mappings that are no longer declared, and adds new ones. Others stay, with
// the connections that they translate.
func (h *handler) updateDNAT(ctx context.Context, old, v *nat.DNat44) error {
	before, now := mappingsOf(old), mappingsOf(v)
	p, err := h.inUse(ctx)
	if err != nil {
		return err
	}
	// Removal comes first: a mapping with another local side has the same external side, and
	// VPP refuses the new one while the old one exists.
	if err := h.remove(ctx, p, lists.Without(before, now)); err != nil {
		return err
	}
	steps, err := h.steps(p, v.GetLabel(), lists.Without(now, before), true)
	if err != nil {
		return err
	}
	_ = h.API.Batch(ctx, steps...) // each step has its error
	return h.added(ctx, p, v, steps)
}

// add adds mappings. The error is that of the first refused one; VPP carries out the rest of
// the batch.
func (h *handler) add(ctx context.Context, p plugin, label string, all []mapping) error {
	steps, err := h.steps(p, label, all, true)
	if err != nil {
		return err
	}
	return h.API.Batch(ctx, steps...)
}

// remove removes mappings. One that is gone is no error. Other clients may remove mappings, and
// disabling NAT44 removes all of them.
func (h *handler) remove(ctx context.Context, p plugin, all []mapping) error {
	steps, err := h.steps(p, "", all, false)
	if err != nil {
		return err
	}
	err = h.API.Batch(ctx, steps...)
	for _, s := range steps {
		if s.Err != nil && !isGone(s.Err) {
			return s.Err
		}
	}
	if isGone(err) {
		return nil
	}
	return err
}

// steps returns the requests to add mappings, or to remove them. A mapping of an interface that
// is gone is removed by its last known index; if none is known, it is left out. The label may
// be empty for removal, since VPP identifies a mapping without its tag. Adding has two errors:
// iface.ErrNotFound for a missing interface, and ErrDisabled for a mapping that the plugin does not
// serve.
func (h *handler) steps(p plugin, label string, all []mapping, add bool) ([]*conn.Step, error) {
	if add && !p.endpointDependent() && sharePort(all) {
		return nil, fmt.Errorf("an identity mapping with a port in several VRFs: %w; expected the endpoint-dependent NAT44", ErrDisabled)
	}
	out := make([]*conn.Step, 0, len(all))
	for _, m := range all {
		if !p.serves(m) {
			if add {
				return nil, fmt.Errorf("a mapping of %s: %w; expected the endpoint-dependent NAT44", m.place, ErrDisabled)
			}
			continue
		}
		at := noInterface
		if m.link != "" {
			index, known := h.Interfaces.Last(m.link)
			link, exists := h.Interfaces.Get(m.link)
			switch {
			case exists:
				index = link.Index
			case add:
				return nil, fmt.Errorf("interface %s: %w", m.link, iface.ErrNotFound)
			case !known:
				continue
			}
			at = interface_types.InterfaceIndex(index)
		}
		out = append(out, p.mapping(m.tag(label), m, at, add))
	}
	return out, nil
}

// as4 returns the bytes of an address; those of the zero Addr are 0.
func as4(a netip.Addr) (out [4]byte) {
	if a.IsValid() {
		out = a.As4()
	}
	return out
}

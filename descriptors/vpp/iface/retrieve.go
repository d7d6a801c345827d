package iface

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// atOnce is how many interfaces are asked about at once.
const atOnce = 64

// Untagged begins the names of interfaces without a tag, which are not ours.
const Untagged = ifindex.UntaggedPrefix

// retrieve yields every interface that VPP has.
func (h *handler) retrieve(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface]) iter.Seq2[scheduler.Found[*interfaces.Interface, Meta], error] {
	return h.read(ctx, wanted, nil)
}

// retrieveSome yields the interfaces of these keys. Addresses and VRFs are what VPP is asked for
// interface by interface, so it is not asked for those of others.
func (h *handler) retrieveSome(ctx context.Context, keys []string, wanted []scheduler.Desired[*interfaces.Interface]) iter.Seq2[scheduler.Found[*interfaces.Interface, Meta], error] {
	only, prefix := make(map[string]bool, len(keys)), models.For[*interfaces.Interface]().Prefix()
	for _, key := range keys {
		only[strings.TrimPrefix(key, prefix)] = true
	}
	return h.read(ctx, wanted, only)
}

// read yields the interfaces with these names; nil: all.
func (h *handler) read(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface], only map[string]bool) iter.Seq2[scheduler.Found[*interfaces.Interface, Meta], error] {
	return func(yield func(scheduler.Found[*interfaces.Interface, Meta], error) bool) {
		all, err := h.look(ctx, wanted, only)
		if err != nil {
			yield(scheduler.Found[*interfaces.Interface, Meta]{}, err)
			return
		}
		h.replaceTable(all)
		h.rememberVRFs(all, only == nil)
		if only == nil { // else it is not known which of the others are wanted
			h.strayed(all)
		}
		h.tapHosts.seen(all)
		for _, f := range all {
			if f.skipped {
				continue
			}
			one := scheduler.Found[*interfaces.Interface, Meta]{Value: f.value, Meta: f.meta}
			one.Foreign, one.OwnerUnknown = h.isForeign(f), h.isUnknown(f)
			if !yield(one, nil) {
				return
			}
		}
	}
}

// isForeign tells that an interface is not ours.
func (h *handler) isForeign(f *found) bool {
	unlike := f.details.Tag == "" || f.value.GetType() == interfaces.Interface_UNDEFINED_TYPE
	return unlike && f.wanted == nil || h.Tags.Foreign(f.details.Tag)
}

// isUnknown tells that an interface does not say whose it is.
func (h *handler) isUnknown(f *found) bool {
	return f.wanted == nil && h.Tags.Unsigned(f.details.Tag)
}

// look asks VPP for all interfaces and what is on them, sorted by index. Of those that only does
// not name it leaves out the parts, unless only is nil.
func (h *handler) look(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface], only map[string]bool) ([]*found, error) {
	lost, noted := h.unconfirmed.All(), h.leftovers.All()
	byName := make(map[string]*interfaces.Interface, len(wanted))
	for _, w := range wanted {
		byName[w.Value.GetName()] = w.Value
		h.Tags.Expect(w.Value.GetName())
	}
	details, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
	if err != nil {
		return nil, err
	}
	all := make(map[uint32]*found, len(details))
	tags := ifindex.TagsOf(details)
	for _, d := range details {
		f := &found{details: d, meta: ifindex.MetaOf(d), value: general(d, tags)}
		f.wanted = byName[f.value.GetName()]
		all[f.meta.Index] = f
	}
	if only == nil {
		h.forgetAwaited()
	}
	adopted, err := h.adopt(ctx, all, lost)
	if err != nil {
		return nil, err
	}
	if adopted {
		for _, f := range all {
			f.wanted = byName[f.value.GetName()]
		}
	}
	if len(noted) > 0 {
		if err := h.leftovers.Reclaim(ctx, h.API); err != nil {
			return nil, err
		}
	}
	for index, f := range all {
		f.skipped = only != nil && !only[f.value.GetName()]
		if err := h.leftovers.EndOthers(ctx, index, noted[index], f.value.GetName()); err != nil {
			return nil, err
		}
		f.value.Ip6Nd = h.autoconfOf(f.value.GetName())
	}
	for _, step := range []func(context.Context, map[uint32]*found) error{h.signOlder, h.lookAtLinks, h.lookAtParts, h.lookAtRx} {
		if err := step(ctx, all); err != nil {
			return nil, err
		}
	}
	h.unconfirmed.Settle(lost)
	return sorted(all), nil
}

// signOlder has the tags of wanted interfaces say that they are this agent's: those of an
// earlier installation, and those of older releases, which say nothing of an owner.
func (h *handler) signOlder(ctx context.Context, all map[uint32]*found) error {
	var steps []*conn.Step
	for _, f := range all {
		if f.wanted != nil && f.details.Tag != "" && h.Tags.Older(f.details.Tag) {
			steps = append(steps, conn.Ask(tagging(f.meta, f.details.Tag), &vppif.SwInterfaceTagAddDelReply{}))
		}
	}
	err := h.API.Together(ctx, steps...)
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil // it has just gone
	}
	return err
}

// lookAtLinks fills in types and links.
func (h *handler) lookAtLinks(ctx context.Context, all map[uint32]*found) error {
	for t, k := range h.kinds {
		if err := k.retrieve(ctx, h, all); err != nil {
			return fmt.Errorf("interfaces of type %s: %w", t, err)
		}
	}
	return nil
}

func sorted(all map[uint32]*found) []*found {
	out := make([]*found, 0, len(all))
	for _, f := range all {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *found) int { return cmp.Compare(a.meta.Index, b.meta.Index) })
	return out
}

// general is what all interfaces tell.
func general(d vppif.SwInterfaceDetails, taken ifindex.Tags) *interfaces.Interface {
	v := &interfaces.Interface{
		Name: taken.NameOf(d), Enabled: d.Flags&adminUp != 0, PhysAddress: d.L2Address.String(),
	}
	if len(d.Mtu) > 0 {
		v.Mtu = d.Mtu[0]
	}
	return v
}

// lookAtParts fills in addresses, VRFs, who borrows an address and who gets one by DHCP.
// What has gone meanwhile is left out.
func (h *handler) lookAtParts(ctx context.Context, all map[uint32]*found) error {
	borrowed, err := conn.Dump[ip.IPUnnumberedDetails](ctx, h.API, &ip.IPUnnumberedDump{SwIfIndex: ifindex.All})
	if err != nil {
		return err
	}
	for _, b := range borrowed {
		if borrower := all[uint32(b.SwIfIndex)]; borrower != nil {
			lender := lenderOf(borrower, all, uint32(b.IPSwIfIndex))
			borrower.value.Unnumbered = &interfaces.Interface_Unnumbered{InterfaceWithIp: lender}
		}
	}
	clients, err := dhcpClients(ctx, h.API)
	if err != nil {
		return err
	}
	for _, c := range clients {
		f := all[uint32(c.Client.SwIfIndex)]
		switch {
		case f == nil:
			if err := h.leftovers.NoteOrphaned(ctx, h.API, uint32(c.Client.SwIfIndex), clientMark, h.endClient); err != nil {
				return err
			}
			continue
		case f.details.Tag != "":
			h.noteClient(f.meta.Index, f.details.Tag, true)
		}
		f.value.SetDhcpClient, f.leased = true, leased(c.Lease)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, f := range all {
		if !f.skipped && (f.details.Tag != "" || f.wanted != nil) {
			group.Go(func() error {
				err := conn.Safely(func() error { return h.lookAt(ctx, f) })
				if f.gone = errors.Is(err, api.INVALID_SW_IF_INDEX); f.gone {
					return nil
				}
				return err
			})
		}
	}
	err = group.Wait()
	maps.DeleteFunc(all, func(_ uint32, f *found) bool { return f.gone })
	return err
}

// lenderOf is the name of the interface of an index, of which another borrows an address. Where
// the one that is declared does not stand it is that: VPP keeps what was borrowed from one
// that is gone, and gives it to who gets its index.
func lenderOf(borrower *found, all map[uint32]*found, index uint32) string {
	name := fmt.Sprint(Untagged, index)
	if f := all[index]; f != nil {
		name = f.value.GetName()
	}
	declared := borrower.wanted.GetUnnumbered().GetInterfaceWithIp()
	if f := all[index]; declared != "" && (f == nil || f.details.Tag == "") && !named(all, declared) {
		return declared
	}
	return name
}

// lookAt asks for the addresses of an interface, and which VRF it is in.
func (h *handler) lookAt(ctx context.Context, f *found) error {
	var addresses [2][]ip.IPAddressDetails
	var tables [2]vppif.SwInterfaceGetTableReply
	var steps []*conn.Step
	for i, ipv6 := range []bool{false, true} {
		steps = append(steps,
			conn.List(&ip.IPAddressDump{SwIfIndex: f.details.SwIfIndex, IsIPv6: ipv6}, &addresses[i]),
			conn.Ask(&vppif.SwInterfaceGetTable{SwIfIndex: f.details.SwIfIndex, IsIPv6: ipv6}, &tables[i]))
	}
	if err := h.API.Together(ctx, steps...); err != nil {
		return err
	}
	for _, some := range addresses {
		prefixes, err := prefixesOf(some)
		if err != nil {
			return err
		}
		h.hasAddresses(f, prefixes)
	}
	if err := h.hasAddressOfLink(ctx, f); err != nil {
		return err
	}
	for _, its := range tables {
		// The value of a tunnel has the VRF of its outer packets.
		if its.VrfID != 0 && f.value.GetUnnumbered() == nil && h.kindOf(f.value).versions == nil {
			f.value.Vrf = its.VrfID
		}
	}
	return nil
}

// hasAddresses adds to an interface what it has, but for what comes and goes by itself.
func (h *handler) hasAddresses(f *found, addresses []netip.Prefix) {
	spelled := h.spelled(f.wanted)
	for _, p := range addresses {
		text, declared := spelled[p]
		if !declared {
			text = p.String()
		}
		if p == f.leased || !declared && f.configuresItself() && ofMAC(p) {
			continue
		}
		f.value.IpAddresses = append(f.value.IpAddresses, text)
	}
}

// addressesOf are the addresses of an interface that are not link-local.
func (h *handler) addressesOf(ctx context.Context, meta Meta, ipv6 bool) ([]netip.Prefix, error) {
	details, err := conn.Dump[ip.IPAddressDetails](ctx, h.API, &ip.IPAddressDump{SwIfIndex: meta.SwIfIndex(), IsIPv6: ipv6})
	if err != nil {
		return nil, err
	}
	return prefixesOf(details)
}

func prefixesOf(details []ip.IPAddressDetails) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(details))
	for i, d := range details {
		if out[i] = vppwire.PrefixOf(d.Prefix); !out[i].IsValid() {
			return nil, fmt.Errorf("%w: sw_if_index %d has the address %s with a prefix length of %d", conn.ErrProtocol, d.SwIfIndex, vppwire.Addr(d.Prefix.Address), d.Prefix.Len)
		}
	}
	return out, nil
}

// spelled are the addresses of a value as it spells them; of two spellings the first.
func (h *handler) spelled(wanted *interfaces.Interface) map[netip.Prefix]string {
	out := make(map[netip.Prefix]string, len(wanted.GetIpAddresses()))
	for _, text := range wanted.GetIpAddresses() {
		p, err := netip.ParsePrefix(alloc.Address(h.Allocations, text, wanted.GetName()))
		if _, twice := out[p]; err == nil && !twice {
			out[p] = text
		}
	}
	return out
}

// replaceTable brings the table of indexes in line with a dump.
func (h *handler) replaceTable(all []*found) {
	entries := make([]ifindex.Entry, len(all))
	for i, f := range all {
		entries[i] = ifindex.Entry{Name: f.details.Tag, Index: f.meta.Index}
	}
	h.table.Replace(entries)
}

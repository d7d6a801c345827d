package iface

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/events"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// atOnce is the number of interfaces that are read concurrently. Requests are pipelined,
// so this hides round trips; VPP itself answers one after the other.
const atOnce = 64

// Untagged begins the names of interfaces without a tag, which are not ours.
const Untagged = ifindex.UntaggedPrefix

// retrieve yields every interface in VPP.
func (h *handler) retrieve(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface]) scheduler.Retrieved[*interfaces.Interface, Meta] {
	return h.read(ctx, wanted, nil)
}

// retrieveSome yields the interfaces of these keys. VPP lists addresses and VRFs per
// interface, so the others are not read.
func (h *handler) retrieveSome(ctx context.Context, keys []string, wanted []scheduler.Desired[*interfaces.Interface]) scheduler.Retrieved[*interfaces.Interface, Meta] {
	only, prefix := make(map[string]bool, len(keys)), models.For[*interfaces.Interface]().Prefix()
	for _, key := range keys {
		only[strings.TrimPrefix(key, prefix)] = true
	}
	return h.read(ctx, wanted, only)
}

// read yields the interfaces with these names; nil means all.
func (h *handler) read(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface], only map[string]bool) scheduler.Retrieved[*interfaces.Interface, Meta] {
	return reading.Of(func(learns bool, yield func(scheduler.Found[*interfaces.Interface, Meta], error) bool) {
		all, err := h.dump(ctx, wanted, only, learns)
		if err != nil {
			yield(scheduler.Found[*interfaces.Interface, Meta]{}, err)
			return
		}
		h.rememberVRFs(all, only == nil, learns)
		h.addressed.remember(h, all, only == nil, learns)
		if learns {
			h.learn(all, only == nil)
		}
		for _, f := range all {
			if f.Skipped {
				continue
			}
			one := scheduler.Found[*interfaces.Interface, Meta]{Value: f.Value, Meta: f.Meta}
			if !learns {
				one.Details = detailsOf(f)
			}
			one.Foreign, one.OwnerUnknown = h.isForeign(f), h.isUnknown(f)
			if !yield(one, nil) {
				return
			}
		}
	})
}

// learn remembers what was read. whole says that all interfaces were.
func (h *handler) learn(all []*kinds.Found, whole bool) {
	h.replaceTable(all)
	h.noteBonded(all)
	h.networks.learn(all, whole)
	if whole { // a partial read does not know which other interfaces are declared
		h.setUntagged(all)
		h.forgetAutoconfOfOthers(all)
	}
	h.env.TAPHosts.Replace(all)
	for _, f := range all {
		h.Tags.Learn(f.Details.Tag)
	}
}

// isForeign tells whether another client or agent owns an interface.
func (h *handler) isForeign(f *kinds.Found) bool {
	unlike := f.Details.Tag == "" || f.Value.GetType() == interfaces.Interface_UNDEFINED_TYPE
	return unlike && f.Desired == nil || h.Tags.Foreign(f.Details.Tag)
}

// isUnknown tells whether the tag of an interface names no owner.
func (h *handler) isUnknown(f *kinds.Found) bool {
	return f.Desired == nil && h.Tags.Unsigned(f.Details.Tag)
}

// dump reads all interfaces, sorted by index, and the parts of those named in only. A nil
// only stands for all. If it learns, it first adopts what the agent has lost, and clears what
// deleted interfaces have left.
func (h *handler) dump(ctx context.Context, wanted []scheduler.Desired[*interfaces.Interface], only map[string]bool, learns bool) ([]*kinds.Found, error) {
	// Before the dump: a creation or a note that comes later must not be forgotten by it.
	lost, noted := h.unconfirmed.All(), h.leftovers.All()
	byName := make(map[string]*interfaces.Interface, len(wanted))
	for _, w := range wanted {
		byName[w.Value.GetName()] = w.Value
		h.Tags.Expect(w.Value.GetName())
	}
	details, err := h.leftovers.Interfaces(ctx, h.API, learns)
	if err != nil {
		return nil, err
	}
	all := make(map[uint32]*kinds.Found, len(details))
	h.nameDoubles(details)
	tags := ifindex.TagsOf(details)
	for _, d := range details {
		f := &kinds.Found{Details: d, Meta: ifindex.MetaOf(d), Value: general(d, tags)}
		f.Desired = byName[f.Value.GetName()]
		all[f.Meta.Index] = f
	}
	if learns {
		if err := h.recover(ctx, all, byName, lost, noted); err != nil {
			return nil, err
		}
	}
	for _, f := range all {
		f.Skipped = only != nil && !only[f.Value.GetName()]
		h.readAutoconf(f, learns)
	}
	if err := h.readLinks(ctx, all); err != nil {
		return nil, err
	}
	if learns {
		h.learnLinks(all, only == nil)
	}
	if err := h.readParts(ctx, all, learns); err != nil {
		return nil, err
	}
	if err := h.readRx(ctx, all); err != nil {
		return nil, err
	}
	if learns {
		h.unconfirmed.Forget(lost)
	}
	return kinds.Sorted(all), nil
}

// recover adopts interfaces whose creation was lost, clears noted leftovers, and signs tags. wanted are
// the declared interfaces by name.
func (h *handler) recover(ctx context.Context, all map[uint32]*kinds.Found, wanted map[string]*interfaces.Interface, lost map[string]leftovers.Creation, noted map[uint32]leftovers.Noted) error {
	adopted, err := h.adopt(ctx, all, lost)
	if err != nil {
		return err
	}
	// adopt has compared the candidates with lost creations, and left these as Desired.
	if adopted {
		for _, f := range all {
			f.Desired = wanted[f.Value.GetName()]
		}
	}
	if err := h.clearLeftovers(ctx, all, noted); err != nil {
		return err
	}
	return h.signOlder(ctx, all)
}

// learnLinks remembers what readLinks has read. whole says that all interfaces are declared that wanted names.
func (h *handler) learnLinks(all map[uint32]*kinds.Found, whole bool) {
	if whole {
		h.env.AwaitedParents.Clear()
	}
	for _, k := range h.kinds {
		if k.Learn != nil {
			k.Learn(h.env, all)
		}
	}
}

// nameDoubles gives an interface whose tag an earlier one has, too, a name of its own if the tag is ours. Nobody
// declares that name, so the interface is removed like any value that is no longer declared. The one that the
// agent knows keeps its name, else the first.
func (h *handler) nameDoubles(details []vppif.SwInterfaceDetails) {
	keeps := map[string]uint32{}
	for _, d := range details {
		known, _ := h.table.Index(d.Tag)
		if _, twice := keeps[d.Tag]; !twice || known == uint32(d.SwIfIndex) {
			keeps[d.Tag] = uint32(d.SwIfIndex)
		}
	}
	for i := range details {
		d := &details[i]
		if d.Tag == "" || keeps[d.Tag] == uint32(d.SwIfIndex) || h.Tags.Foreign(d.Tag) || h.Tags.Unsigned(d.Tag) {
			continue
		}
		h.Log.Warn("VPP has two interfaces with one tag of the agent; the second is removed", "interface", d.Tag, "sw_if_index", d.SwIfIndex)
		d.Tag = fmt.Sprintf("%s.double%d", d.Tag, d.SwIfIndex)
	}
}

// clearLeftovers removes what interfaces left on an index that another one has now. It comes
// before the state of the interfaces is read, which would show the rest as theirs.
func (h *handler) clearLeftovers(ctx context.Context, all map[uint32]*kinds.Found, noted map[uint32]leftovers.Noted) error {
	if len(noted) > 0 {
		if err := h.leftovers.Reclaim(ctx, h.API); err != nil {
			return err
		}
	}
	for index, f := range all {
		if err := h.leftovers.EndOthers(ctx, index, noted[index], f.Value.GetName()); err != nil {
			return err
		}
		h.noteMTU(f)
	}
	return nil
}

// signOlder adds this agent as the owner to the tags of declared interfaces. Tags of an
// earlier installation have another owner, and tags of older releases have none.
func (h *handler) signOlder(ctx context.Context, all map[uint32]*kinds.Found) error {
	var steps []*conn.Step
	for _, f := range all {
		if f.Desired != nil && f.Details.Tag != "" && h.Tags.Older(f.Details.Tag) {
			steps = append(steps, conn.Ask(kinds.Tagging(f.Meta, f.Details.Tag), &vppif.SwInterfaceTagAddDelReply{}))
		}
	}
	err := h.API.Batch(ctx, steps...)
	for _, s := range steps {
		switch {
		case s.Err == nil, errors.Is(s.Err, api.INVALID_SW_IF_INDEX): // the interface was deleted meanwhile
		case isRefusal(s.Err):
			h.Log.Warn("an interface keeps its older tag; it is tried again", "err", s.Err)
		default:
			return err
		}
	}
	return nil
}

// isRefusal reports whether VPP has answered, and refused what it was asked.
func isRefusal(err error) bool {
	var refusal *conn.Refusal
	return errors.As(err, &refusal)
}

// readLinks fills in types and links.
func (h *handler) readLinks(ctx context.Context, all map[uint32]*kinds.Found) error {
	for t, k := range h.kinds {
		if err := k.Retrieve(ctx, h.env, all); err != nil {
			return fmt.Errorf("interfaces of type %s: %w", t, err)
		}
	}
	return nil
}

// general returns the fields that all interfaces have.
func general(d vppif.SwInterfaceDetails, taken ifindex.Tags) *interfaces.Interface {
	v := &interfaces.Interface{
		Name: taken.NameOf(d), Enabled: d.Flags&kinds.AdminUp != 0, PhysAddress: d.L2Address.String(),
	}
	if len(d.Mtu) > 0 {
		v.Mtu = d.Mtu[0]
	}
	return v
}

// readParts fills in addresses, VRFs, borrowed addresses and DHCP clients. It removes
// interfaces that were deleted meanwhile. If the read learns, it notes the clients.
func (h *handler) readParts(ctx context.Context, all map[uint32]*kinds.Found, learns bool) error {
	borrowed, err := conn.Dump[ip.IPUnnumberedDetails](ctx, h.API, &ip.IPUnnumberedDump{SwIfIndex: ifindex.All})
	if err != nil {
		return err
	}
	for _, b := range borrowed {
		if borrower := all[uint32(b.SwIfIndex)]; borrower != nil {
			lender := lenderOf(borrower, all, uint32(b.IPSwIfIndex))
			borrower.Value.Unnumbered = &interfaces.Interface_Unnumbered{InterfaceWithIp: lender}
		}
	}
	if err := h.readClients(ctx, all, learns); err != nil {
		return err
	}
	if err := h.env.ReadVirtual(ctx, all); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, f := range all {
		if !f.Skipped && (f.Details.Tag != "" || f.Desired != nil) {
			group.Go(func() error {
				err := conn.Safely(func() error { return h.readAddresses(ctx, f) })
				if f.Gone = errors.Is(err, api.INVALID_SW_IF_INDEX); f.Gone {
					return nil
				}
				return err
			})
		}
	}
	err = group.Wait()
	maps.DeleteFunc(all, func(_ uint32, f *kinds.Found) bool { return f.Gone })
	return err
}

// readClients fills in DHCP clients. If the read learns, it notes them.
func (h *handler) readClients(ctx context.Context, all map[uint32]*kinds.Found, learns bool) error {
	clients, err := dhcpClients(ctx, h.API)
	if err != nil {
		return err
	}
	for _, c := range clients {
		f := all[uint32(c.Client.SwIfIndex)]
		switch {
		case f == nil && !learns:
			continue
		case f == nil:
			if err := h.leftovers.NoteOrphaned(ctx, h.API, uint32(c.Client.SwIfIndex), clientMark, h.endClient); err != nil {
				return err
			}
			continue
		case learns && f.Details.Tag != "":
			h.leftovers.Note(f.Meta.Index, f.Details.Tag, clientMark, h.endClient)
		}
		f.Value.SetDhcpClient, f.Leased, f.Client = true, events.Leased(c.Lease), &c
	}
	return nil
}

// lenderOf returns the name of the interface that lends its address to borrower. VPP keeps
// a borrowed address when the lender is deleted, and attributes it to the next interface
// with that index. So if the declared lender does not exist, and no tagged interface has
// the index, lenderOf returns the declared lender.
func lenderOf(borrower *kinds.Found, all map[uint32]*kinds.Found, index uint32) string {
	name := fmt.Sprint(Untagged, index)
	if f := all[index]; f != nil {
		name = f.Value.GetName()
	}
	declared := borrower.Desired.GetUnnumbered().GetInterfaceWithIp()
	if f := all[index]; declared != "" && (f == nil || f.Details.Tag == "") && !hasTag(all, declared) {
		return declared
	}
	return name
}

// readAddresses reads the addresses and the VRF of an interface.
func (h *handler) readAddresses(ctx context.Context, f *kinds.Found) error {
	var addresses [2][]ip.IPAddressDetails
	var tables [2]vppif.SwInterfaceGetTableReply
	var steps []*conn.Step
	for i, ipv6 := range []bool{false, true} {
		steps = append(steps,
			conn.List(&ip.IPAddressDump{SwIfIndex: f.Details.SwIfIndex, IsIPv6: ipv6}, &addresses[i]),
			conn.Ask(&vppif.SwInterfaceGetTable{SwIfIndex: f.Details.SwIfIndex, IsIPv6: ipv6}, &tables[i]))
	}
	if err := h.API.Batch(ctx, steps...); err != nil {
		return err
	}
	for _, some := range addresses {
		prefixes, err := prefixesOf(some)
		if err != nil {
			return err
		}
		f.Addresses = append(f.Addresses, prefixes...)
		h.addAddresses(f, prefixes)
	}
	if err := h.readLinkLocal(ctx, f); err != nil {
		return err
	}
	f.Tables = [2]uint32{tables[0].VrfID, tables[1].VrfID}
	for _, its := range tables {
		// The vrf field of a tunnel is the VRF of its outer packets.
		if its.VrfID != 0 && f.Value.GetUnnumbered() == nil && h.kindOf(f.Value).Versions == nil {
			f.Value.Vrf = its.VrfID
		}
	}
	return nil
}

// addAddresses adds addresses to a found interface, except those that DHCP, autoconfiguration or
// virtual routers gave to it.
func (h *handler) addAddresses(f *kinds.Found, addresses []netip.Prefix) {
	spelled := h.declaredTexts(f.Desired)
	for _, p := range addresses {
		text, declared := spelled[p]
		if !declared {
			text = p.String()
		}
		if p == f.Leased || !declared && (f.Virtual[p.Addr()] || configuresItself(f) && isEUI64(p)) {
			continue
		}
		f.Value.IpAddresses = append(f.Value.IpAddresses, text)
	}
}

// addressesOf returns the addresses of an interface without link-local ones.
func (h *handler) addressesOf(ctx context.Context, meta Meta, ipv6 bool) ([]netip.Prefix, error) {
	details, err := conn.Dump[ip.IPAddressDetails](ctx, h.API, &ip.IPAddressDump{SwIfIndex: meta.SwIfIndex(), IsIPv6: ipv6})
	if err != nil {
		return nil, err
	}
	return prefixesOf(details)
}

// prefixesOf converts a list of VPP. An invalid length is an error of the whole read: an address that was left out would count as lost.
func prefixesOf(details []ip.IPAddressDetails) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(details))
	for i, d := range details {
		if out[i] = vppwire.PrefixOf(d.Prefix); !out[i].IsValid() {
			return nil, fmt.Errorf("%w: sw_if_index %d has the address %s with a prefix length of %d", conn.ErrProtocol, d.SwIfIndex, vppwire.Addr(d.Prefix.Address), d.Prefix.Len)
		}
	}
	return out, nil
}

// declaredTexts returns the addresses of a value with their declared text. If an address
// is declared with two texts, the first counts.
func (h *handler) declaredTexts(wanted *interfaces.Interface) map[netip.Prefix]string {
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
func (h *handler) replaceTable(all []*kinds.Found) {
	entries := make([]ifindex.Entry, len(all))
	for i, f := range all {
		entries[i] = ifindex.Entry{Name: f.Details.Tag, Index: f.Meta.Index}
	}
	h.table.Replace(entries)
}

package nat

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// readMappings returns a plugin's mappings by label; declared are the mappings of declared labels.
// Mappings without a tag are left out: they are not ours.
//
// VPP lists a mapping of an interface's address twice: with the interface, and once more with
// the address that it has. The latter is left out. If a declared mapping looks like it, that
// one stays: VPP would have refused another one of the same address. Several dumps are needed:
// VPP has a message for each kind of mapping. If one fails, the result is nil, since an
// incomplete list would have the scheduler add mappings that exist.
func (h *handler) readMappings(ctx context.Context, p plugin, declared map[string]map[mapping]bool, learns bool) (*reader, error) {
	r := &reader{h: h, ctx: ctx, learns: learns, names: h.Interfaces.Names(), all: map[string][]mapping{}, bound: map[string][]mapping{}, unsigned: map[string]bool{}}
	if err := p.readMappings(r); err != nil {
		return nil, err
	}
	for label, bound := range r.bound {
		r.all[label] = append(withoutResolved(r.all[label], bound, declared[label]), bound...)
	}
	if learns {
		for label := range r.all {
			h.Tags.Learn(label)
		}
	}
	return r, nil
}

// withoutResolved returns all without one mapping of an address for each of bound, the mappings of
// interfaces' addresses, that may be the same mapping. Those that are declared stay.
func withoutResolved(all, bound []mapping, declared map[mapping]bool) []mapping {
	resolved := map[mapping]int{} // by what a mapping is without its address: how many to leave out
	anywhere := func(m mapping) mapping {
		m.addr, m.link = netip.Addr{}, ""
		return m
	}
	for _, b := range bound {
		resolved[anywhere(b)]++
	}
	return slices.DeleteFunc(all, func(m mapping) bool {
		if m.link != "" || declared[m] || resolved[anywhere(m)] == 0 {
			return false
		}
		resolved[anywhere(m)]--
		return true
	})
}

// A reader collects mappings by label. It serves one read, in one goroutine.
type reader struct {
	h   *handler
	ctx context.Context //nolint:containedctx // of one read
	// learns says that nobody only looks
	learns bool
	// by index, as they were when the read began
	names map[uint32]string
	// by label, without those in bound until readMappings merges them
	all   map[string][]mapping
	bound map[string][]mapping // of interfaces
	// unsigned are the labels of tags that do not tell their owner.
	unsigned map[string]bool
	// each gets all mappings instead, also those that no value can declare; nil: none
	each func(tag string, m mapping, at interface_types.InterfaceIndex)
}

// take adds a mapping with a tag. One that no value can declare is skipped without an error, as is
// one of another protocol. The error of take is that of removing a mapping of a deleted interface.
func (r *reader) take(tag string, m mapping, at interface_types.InterfaceIndex, declarable bool) error {
	if r.each != nil {
		r.each(tag, m, at)
		return nil
	}
	if _, known := protocolOf(m.protocol); !known || !declarable {
		return nil
	}
	label, affinity, pool, self := parseTag(tag)
	m.affinity, m.pool = affinity, pool
	// One tag without a sign is enough: the value is then ours only if the agent remembers
	// it.
	r.unsigned[label] = r.unsigned[label] || r.h.Tags.Unsigned(tag)
	if self {
		m.twice = nat.DNat44_StaticMapping_SELF
	}
	if at == noInterface {
		if tag != "" {
			r.all[label] = append(r.all[label], m)
		}
		return nil
	}
	m.addr, m.link = netip.Addr{}, r.names[uint32(at)]
	if m.link == "" && !r.learns {
		return nil
	}
	if m.link == "" {
		// The next interface with the index would get the mapping.
		return r.h.Interfaces.Leftovers().NoteOrphaned(r.ctx, r.h.API, uint32(at), "NAT44 mapping "+m.place.String(), r.h.endMapping(m))
	}
	if tag != "" {
		r.bound[label] = append(r.bound[label], m)
	}
	return nil
}

// endMapping returns the function that removes a mapping of an interface's address. Its
// requests succeed if the mapping is gone already.
func (h *handler) endMapping(m mapping) func(context.Context, interface_types.InterfaceIndex) error {
	return func(ctx context.Context, at interface_types.InterfaceIndex) error {
		return unlessGone(h.API.Batch(ctx, edPlugin{h.API}.mapping("", m, at, false)))
	}
}

// placeOf returns an external side. VPP's port and protocol of a mapping of all ports have no
// meaning, so they are normalized.
func placeOf(addr [4]byte, port uint16, protocol uint8, flags nat_types.NatConfigFlags) place {
	if flags&nat_types.NAT_IS_ADDR_ONLY != 0 {
		port, protocol = 0, noProtocol
	}
	return place{addr: netip.AddrFrom4(addr), port: port, protocol: protocol}
}

// twiceOf returns the mode of twice-NAT. In the details of an interface's mapping, VPP leaves
// out the flag of SELF; the tag has it.
func twiceOf(flags nat_types.NatConfigFlags) nat.DNat44_StaticMapping_TwiceNatMode {
	switch {
	case flags&nat_types.NAT_IS_TWICE_NAT != 0:
		return nat.DNat44_StaticMapping_ENABLED
	case flags&nat_types.NAT_IS_SELF_TWICE_NAT != 0:
		return nat.DNat44_StaticMapping_SELF
	}
	return nat.DNat44_StaticMapping_DISABLED
}

// static reads static mappings. One that translates in both directions is not ours.
func (r *reader) static() error {
	all, err := conn.Dump[nat44_ed.Nat44StaticMappingDetails](r.ctx, r.h.API, &nat44_ed.Nat44StaticMappingDump{})
	if err != nil {
		return err
	}
	for _, d := range all {
		// VPP leaves the flag out of the details of an interface's mapping, so it is
		// checked only here.
		declarable := d.ExternalSwIfIndex != noInterface || d.Flags&nat_types.NAT_IS_OUT2IN_ONLY != 0
		m := mapping{
			place: placeOf(d.ExternalIPAddress, d.ExternalPort, d.Protocol, d.Flags), twice: twiceOf(d.Flags),
			local: local{addr: netip.AddrFrom4(d.LocalIPAddress), port: d.LocalPort, vrf: d.VrfID},
		}
		// A declared mapping of all ports has local port 0. Another number would be read
		// as drift.
		if m.port == 0 {
			m.local.port = 0
		}
		if err := r.take(d.Tag, m, d.ExternalSwIfIndex, declarable); err != nil {
			return err
		}
	}
	return nil
}

// balanced reads mappings with several local sides. As with static ones, those that translate
// in both directions are not ours.
func (r *reader) balanced() error {
	all, err := conn.Dump[nat44_ed.Nat44LbStaticMappingDetails](r.ctx, r.h.API, &nat44_ed.Nat44LbStaticMappingDump{})
	if err != nil {
		return err
	}
	for _, d := range all {
		locals := make([]local, 0, len(d.Locals))
		for _, l := range d.Locals {
			locals = append(locals, local{netip.AddrFrom4(l.Addr), l.Port, l.VrfID, l.Probability})
		}
		m := mapping{place: placeOf(d.ExternalAddr, d.ExternalPort, d.Protocol, d.Flags), twice: twiceOf(d.Flags), balanced: encode(locals)}
		if err := r.take(d.Tag, m, noInterface, d.Flags&nat_types.NAT_IS_OUT2IN_ONLY != 0); err != nil {
			return err
		}
	}
	return nil
}

// identity reads identity mappings.
func (r *reader) identity() error {
	all, err := conn.Dump[nat44_ed.Nat44IdentityMappingDetails](r.ctx, r.h.API, &nat44_ed.Nat44IdentityMappingDump{})
	if err != nil {
		return err
	}
	for _, d := range all {
		m := mapping{place: placeOf(d.IPAddress, d.Port, d.Protocol, d.Flags), identity: true, vrf: d.VrfID}
		if err := r.take(d.Tag, m, d.SwIfIndex, true); err != nil {
			return err
		}
	}
	return nil
}

// retrieveDNATs yields the mappings by label. A declared value without mappings needs nothing in
// VPP, so it is there.
func (h *handler) retrieveDNATs(ctx context.Context, wanted []scheduler.Desired[*nat.DNat44]) iter.Seq2[scheduler.Found[*nat.DNat44, struct{}], error] {
	type found = scheduler.Found[*nat.DNat44, struct{}]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		declared, byLabel := make(map[string]map[mapping]bool, len(wanted)), make(map[string]scheduler.Desired[*nat.DNat44], len(wanted))
		for _, w := range wanted {
			label, all := w.Value.GetLabel(), mappingsOf(w.Value)
			declared[label], byLabel[label] = lists.Set(all), w
			for _, m := range all {
				// A long tag is cut in VPP. It can be completed only if it was
				// announced before the dump.
				h.Tags.Expect(m.tag(label))
			}
			if len(all) == 0 && !yield(found{Key: w.Key, Value: w.Value}, nil) {
				return
			}
		}
		p, err := h.inUse(ctx)
		if errors.Is(err, ErrDisabled) {
			return // and so without mappings
		}
		if err != nil {
			yield(found{}, err)
			return
		}
		read, err := h.readMappings(ctx, p, declared, learns)
		if err != nil {
			yield(found{}, err)
			return
		}
		all := read.all
		for _, label := range slices.Sorted(maps.Keys(all)) {
			w, ours := byLabel[label]
			one := found{Key: w.Key, Value: valueOf(label, all[label])}
			switch {
			case ours && len(declared[label]) == 0, len(all[label]) == 0:
				continue
			// The declared message keeps its spelling and order, so that the scheduler
			// sees no difference.
			case ours && maps.Equal(declared[label], lists.Set(all[label])):
				one.Value = w.Value
			case !ours:
				one.Foreign, one.OwnerUnknown = h.Tags.Foreign(label), read.unsigned[label]
			}
			if !yield(one, nil) {
				return
			}
		}
	})
}

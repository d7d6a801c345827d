package punt

import (
	"context"
	"fmt"
	"iter"
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// redirectDescriptor implements the redirection of packets for the host to an interface.
//
// VPP counts its requests for redirections (ip4_punt_drop.c): one that replaces a redirection
// counts, and so does one that ends none. With a wrong count, VPP redirects for ever, or never
// again. So the verbs read what VPP has, add only where there is none, and end only what is
// there. There is no Update for that reason.
func (h *handler) redirectDescriptor() scheduler.Descriptor[*punt.IPRedirect, struct{}] {
	return scheduler.Descriptor[*punt.IPRedirect, struct{}]{
		Name:  RedirectName,
		Model: models.For[*punt.IPRedirect](),

		Normalize: normalizeRedirect,
		Validate:  validateRedirect,
		Equivalent: func(_ string, old, new *punt.IPRedirect) bool {
			return old.GetL3Protocol() == new.GetL3Protocol() && old.GetRxInterface() == new.GetRxInterface() && redirectOf(old) == redirectOf(new)
		},
		Dependencies: func(_ string, v *punt.IPRedirect) []scheduler.Dependency {
			out := []scheduler.Dependency{{Label: "tx-interface", Key: keys.Interface(v.GetTxInterface()).Key()}}
			if v.GetRxInterface() != "" {
				out = append(out, scheduler.Dependency{Label: "rx-interface", Key: keys.Interface(v.GetRxInterface()).Key()})
			}
			return out
		},
		Claims: func(_ string, v *punt.IPRedirect) (out []scheduler.Claim) {
			for _, version := range versionsOf(v.GetL3Protocol()) {
				out = append(out, scheduler.Claim{
					Resource: "vpp-punt-redirect/" + []string{"ipv4", "ipv6"}[version] + "/" + v.GetRxInterface(), Field: "rx_interface", Value: v.GetRxInterface(),
					Want: "an interface without another redirection of the same IP version; an empty name is all other interfaces",
				})
			}
			return out
		},
		Resolve: func(_ string, v *punt.IPRedirect) *punt.IPRedirect {
			if v.GetL3Protocol() == punt.L3Protocol_ALL || v.GetNextHop() != "" {
				return v
			}
			v = proto.CloneOf(v)
			v.L3Protocol = punt.L3Protocol_ALL
			return v
		},
		Parts: func(_ string, v *punt.IPRedirect) []*punt.IPRedirect {
			return partsOf(v, v.GetL3Protocol(), func(v *punt.IPRedirect, l3 punt.L3Protocol) { v.L3Protocol = l3 })
		},

		Create:        h.redirect,
		Delete:        h.endRedirect,
		Retrieve:      h.retrieveRedirects,
		RetrieveAfter: []string{iface.Name},
	}
}

// normalizeRedirect removes a prefix length from the next hop.
func normalizeRedirect(_ string, v *punt.IPRedirect) (*punt.IPRedirect, []string) {
	if !spelling.HasLength(v.GetNextHop()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, spelling.Host("next_hop", &v.NextHop)
}

func validateRedirect(_ string, v *punt.IPRedirect) error {
	var f models.Faults
	if len(versionsOf(v.GetL3Protocol())) == 0 {
		f.Add("l3_protocol", v.GetL3Protocol().String(), "IPV4, IPV6 or ALL")
	}
	if v.GetTxInterface() == "" {
		f.Add("tx_interface", "", "the name of an interface")
	}
	next, err := netip.ParseAddr(v.GetNextHop())
	switch isValid := err == nil && next.Zone() == ""; {
	case v.GetNextHop() == "":
	case v.GetL3Protocol() == punt.L3Protocol_ALL:
		f.Add("next_hop", v.GetNextHop(), "no address for ALL: declare one value for IPV4 and one for IPV6")
	case v.GetL3Protocol() == punt.L3Protocol_IPV4 && (!isValid || !next.Is4()):
		f.Add("next_hop", v.GetNextHop(), `an IPv4 address, such as "10.0.0.1", or nothing`)
	case v.GetL3Protocol() == punt.L3Protocol_IPV6 && (!isValid || !next.Is6()):
		f.Add("next_hop", v.GetNextHop(), `an IPv6 address, such as "fd00::1", or nothing`)
	case !isValid:
		f.Add("next_hop", v.GetNextHop(), `an address, such as "10.0.0.1" or "fd00::1", or nothing`)
	}
	return f.Err()
}

// A way is where packets are redirected to.
type way struct {
	tx   string     // name of the interface
	next netip.Addr // the zero Addr: the packet's own destination
}

// redirectOf returns the way of a valid value.
func redirectOf(v *punt.IPRedirect) way {
	next, err := netip.ParseAddr(v.GetNextHop())
	if err != nil || next.IsUnspecified() {
		next = netip.Addr{}
	}
	return way{v.GetTxInterface(), next}
}

// anyInterface is the incoming interface of redirections for all other interfaces (~0).
const anyInterface = ifindex.All

// incoming returns the index of the interface that packets come from. With gone, it also finds
// a deleted interface: VPP keeps its redirection.
func (h *handler) incoming(name string, gone bool) (at interface_types.InterfaceIndex, ok bool) {
	if name == "" {
		return anyInterface, true
	}
	if meta, ok := h.Interfaces.Get(name); ok {
		return meta.SwIfIndex(), true
	}
	if !gone {
		return 0, false
	}
	last, known := h.Interfaces.Last(name)
	return interface_types.InterfaceIndex(last), known
}

// redirect redirects packets. Another redirection of the same packets is ended first.
func (h *handler) redirect(ctx context.Context, _ string, v *punt.IPRedirect) (struct{}, error) {
	rx, ok := h.incoming(v.GetRxInterface(), false)
	if !ok {
		return struct{}{}, fmt.Errorf("interface %s: %w", v.GetRxInterface(), iface.ErrNotFound)
	}
	tx, err := iface.Find(h.Interfaces, v.GetTxInterface())
	if err != nil {
		return struct{}{}, err
	}
	for _, version := range versionsOf(v.GetL3Protocol()) {
		to := fib_types.FibPath{SwIfIndex: tx.Index, Weight: 1, Proto: fib_types.FibPathNhProto(version)}
		if next := redirectOf(v).next; next.IsValid() {
			to.Nh.Address = vppwire.Address(next).Un
		}
		if err := h.redirectTo(ctx, version, rx, to); err != nil {
			return struct{}{}, err
		}
	}
	return struct{}{}, nil
}

// redirectTo redirects packets of one IP version, unless VPP does so already.
func (h *handler) redirectTo(ctx context.Context, version int, rx interface_types.InterfaceIndex, to fib_types.FibPath) error {
	was, has, err := h.redirection(ctx, version, rx)
	switch {
	case err != nil:
		return err
	case has && len(was.Paths) == 1 && was.Paths[0].SwIfIndex == to.SwIfIndex && was.Paths[0].Nh.Address == to.Nh.Address:
		return nil
	case has:
		if err := h.set(ctx, version, rx, nil); err != nil {
			return err
		}
	}
	return h.set(ctx, version, rx, []fib_types.FibPath{to})
}

// set adds a redirection where there is none, or without paths ends the one that is there.
func (h *handler) set(ctx context.Context, version int, rx interface_types.InterfaceIndex, paths []fib_types.FibPath) error {
	of := ip.PuntRedirectV2{RxSwIfIndex: rx, Af: family(version), Paths: paths}
	return h.API.Call(ctx, &ip.AddDelIPPuntRedirectV2{IsAdd: len(paths) > 0, Punt: of}, &ip.AddDelIPPuntRedirectV2Reply{})
}

// redirection reads the redirection of one IP version from one interface, or from all others.
func (h *handler) redirection(ctx context.Context, version int, rx interface_types.InterfaceIndex) (one ip.PuntRedirectV2, has bool, err error) {
	all, err := conn.Dump[ip.IPPuntRedirectV2Details](ctx, h.API, &ip.IPPuntRedirectV2Dump{SwIfIndex: rx, Af: family(version)})
	for _, d := range all {
		if d.Punt.RxSwIfIndex == rx {
			return d.Punt, true, err
		}
	}
	return ip.PuntRedirectV2{}, false, err
}

// endRedirect ends the redirection of a value, unless another one has taken its place.
func (h *handler) endRedirect(ctx context.Context, _ string, v *punt.IPRedirect, _ struct{}) error {
	rx, ok := h.incoming(v.GetRxInterface(), true)
	if !ok {
		return nil
	}
	tx, known := h.Interfaces.Last(v.GetTxInterface())
	if meta, ok := h.Interfaces.Get(v.GetTxInterface()); ok {
		tx, known = meta.Index, true
	}
	for _, version := range versionsOf(v.GetL3Protocol()) {
		was, has, err := h.redirection(ctx, version, rx)
		if err != nil {
			return err
		}
		if !has || known && len(was.Paths) > 0 && was.Paths[0].SwIfIndex != tx {
			continue
		}
		if err := h.set(ctx, version, rx, nil); err != nil {
			return err
		}
	}
	return nil
}

// readRedirects returns the ways of packets by the name of the incoming interface. A redirection
// from or to a deleted interface is noted if the read learns: the next interface with its index would inherit it.
func (h *handler) readRedirects(ctx context.Context, learns bool) (map[string]*pair[way], error) {
	names, out := h.Interfaces.Names(), map[string]*pair[way]{}
	for version := range 2 {
		all, err := conn.Dump[ip.IPPuntRedirectV2Details](ctx, h.API, &ip.IPPuntRedirectV2Dump{SwIfIndex: anyInterface, Af: family(version)})
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			if len(d.Punt.Paths) == 0 {
				continue
			}
			path, rx := d.Punt.Paths[0], d.Punt.RxSwIfIndex
			from, tx := names[uint32(rx)], names[path.SwIfIndex]
			if rx == anyInterface {
				from = ""
			}
			switch lost := from == "" && rx != anyInterface; {
			case (lost || tx == "") && !learns:
			case lost:
				err = h.noteOrphan(ctx, uint32(rx), version, rx)
			case tx == "":
				err = h.noteOrphan(ctx, path.SwIfIndex, version, rx)
			default:
				if out[from] == nil {
					out[from] = &pair[way]{}
				}
				out[from][version] = wayOf(tx, vppwire.AddrIn(path.Nh.Address, version == ipv6))
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// wayOf returns the way out of an interface, with a next hop unless that is unspecified.
func wayOf(tx string, next netip.Addr) *way {
	if next.IsUnspecified() {
		return &way{tx: tx}
	}
	return &way{tx: tx, next: next}
}

// noteOrphan notes a redirection that names the index of a deleted interface.
func (h *handler) noteOrphan(ctx context.Context, gone uint32, version int, rx interface_types.InterfaceIndex) error {
	what := fmt.Sprint("redirection of IP version ", version, " from ", rx)
	return h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, gone, what, func(ctx context.Context, _ interface_types.InterfaceIndex) error {
		was, has, err := h.redirection(ctx, version, rx)
		if err != nil || !has || uint32(rx) != gone && (len(was.Paths) == 0 || was.Paths[0].SwIfIndex != gone) {
			return err // somebody has ended it, or it has another way now
		}
		return h.set(ctx, version, rx, nil)
	})
}

func (h *handler) retrieveRedirects(ctx context.Context, wanted []scheduler.Desired[*punt.IPRedirect]) iter.Seq2[scheduler.Found[*punt.IPRedirect, struct{}], error] {
	type found = scheduler.Found[*punt.IPRedirect, struct{}]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		all, err := h.readRedirects(ctx, learns)
		if err != nil {
			yield(found{}, err)
			return
		}
		value := func(l3 punt.L3Protocol, rx string, to way) *punt.IPRedirect {
			v := &punt.IPRedirect{L3Protocol: l3, RxInterface: rx, TxInterface: to.tx}
			if to.next.IsValid() {
				v.NextHop = to.next.String()
			}
			return v
		}
		for _, w := range wanted {
			at, rx, l3 := all[w.Value.GetRxInterface()], w.Value.GetRxInterface(), w.Value.GetL3Protocol()
			if at == nil || !leavesBy(at, l3, w.Value.GetTxInterface()) {
				continue // the key of a value has its outgoing interface
			}
			to, ok := at.take(l3)
			if ok && !yield(found{Key: w.Key, Value: value(l3, rx, to)}, nil) {
				return
			}
		}
		for rx, at := range all {
			for l3, to := range at.rest() {
				if !yield(found{Value: value(l3, rx, to), OwnerUnknown: true}, nil) {
					return
				}
			}
		}
	})
}

// leavesBy reports whether VPP redirects packets of any of these IP versions, and all of those
// to this interface.
func leavesBy(at *pair[way], l3 punt.L3Protocol, tx string) (is bool) {
	for _, version := range versionsOf(l3) {
		if at[version] != nil && at[version].tx != tx {
			return false
		}
		is = is || at[version] != nil
	}
	return is
}

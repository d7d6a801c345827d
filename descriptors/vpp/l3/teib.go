package l3

import (
	"context"
	"errors"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/teib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// teibDescriptor keeps entries of the tunnel endpoint information base: by which next
// hop a peer of a tunnel to many is reached.
func (h handler) teibDescriptor() scheduler.Descriptor[*l3.TeibEntry, struct{}] {
	return scheduler.Descriptor[*l3.TeibEntry, struct{}]{
		Name:       TEIBName,
		Model:      models.For[*l3.TeibEntry](),
		Connection: h.Southbound,

		Normalize: normalizeTEIB,
		Validate:  validateTEIB,
		Equivalent: func(_ string, old, new *l3.TeibEntry) bool {
			return old.GetVrfId() == new.GetVrfId() && sameAddress(old.GetNextHopAddr(), new.GetNextHopAddr())
		},
		Dependencies: teibDependencies,

		Create: func(ctx context.Context, _ string, v *l3.TeibEntry) (struct{}, error) {
			err := h.addTEIB(ctx, v)
			if errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
				err = errors.Join(h.deleteTEIB(ctx, v), h.addTEIB(ctx, v)) // it may be another
			}
			return struct{}{}, err
		},
		Delete: func(ctx context.Context, _ string, v *l3.TeibEntry, _ struct{}) error {
			return h.deleteTEIB(ctx, v)
		},
		Retrieve:      h.teibEntries().Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

func validateTEIB(_ string, v *l3.TeibEntry) error {
	var f faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	f.address("peer_addr", v.GetPeerAddr())
	f.address("next_hop_addr", v.GetNextHopAddr())
	f.table("vrf_id", v.GetVrfId())
	return f.Err()
}

// address checks that there is one.
func (f *faults) address(field, text string) {
	if a, err := netip.ParseAddr(text); err != nil || a.Zone() != "" {
		f.Add(field, text, `an address, such as "10.0.0.1" or "fd00::1"`)
	}
}

// sameAddress compares addresses, however they are spelled.
func sameAddress(a, b string) bool { return canonical(a) == canonical(b) }

func teibDependencies(_ string, v *l3.TeibEntry) []scheduler.Dependency {
	deps := []scheduler.Dependency{{Label: "interface-exists", Key: keys.InterfaceKey(v.GetInterface())}}
	if v.GetVrfId() != 0 {
		next, _ := netip.ParseAddr(v.GetNextHopAddr())
		deps = append(deps, scheduler.Dependency{Label: "vrf-table-exists", Key: keys.VRFTable(v.GetVrfId(), next.Is6())})
	}
	return deps
}

func (h handler) addTEIB(ctx context.Context, v *l3.TeibEntry) error {
	meta, err := h.interfaceNamed(v.GetInterface())
	if err != nil {
		return err
	}
	peer, errPeer := netip.ParseAddr(v.GetPeerAddr())
	next, errNext := netip.ParseAddr(v.GetNextHopAddr())
	if err := errors.Join(errPeer, errNext); err != nil {
		return err
	}
	request := &teib.TeibEntryAddDel{IsAdd: 1, Entry: teib.TeibEntry{
		SwIfIndex: meta.SwIfIndex(), Peer: vppwire.Address(peer), Nh: vppwire.Address(next), NhTableID: v.GetVrfId(),
	}}
	return h.API.Call(ctx, request, &teib.TeibEntryAddDelReply{})
}

func (h handler) deleteTEIB(ctx context.Context, v *l3.TeibEntry) error {
	peer, err := netip.ParseAddr(v.GetPeerAddr())
	if err != nil {
		return err
	}
	return h.cleanUp(ctx, v.GetInterface(), h.teibCleanup(peer))
}

// endpoint is the entry of a peer, to be ended.
func (h handler) teibCleanup(peer netip.Addr) cleanup {
	return cleanup{"endpoint " + peer.String(), func(ctx context.Context, at interface_types.InterfaceIndex) error {
		err := h.API.Call(ctx, &teib.TeibEntryAddDel{Entry: teib.TeibEntry{SwIfIndex: at, Peer: vppwire.Address(peer)}}, &teib.TeibEntryAddDelReply{})
		if errors.Is(err, api.NO_SUCH_ENTRY) {
			return nil
		}
		return err
	}}
}

func (h handler) teibEntries() readback.Retriever[*l3.TeibEntry] {
	return readback.Retriever[*l3.TeibEntry]{
		Read: func(ctx context.Context) (out []*l3.TeibEntry, err error) {
			all, err := conn.Dump[teib.TeibDetails](ctx, h.API, &teib.TeibDump{})
			names, left := h.namesByIndex(), false
			for _, d := range all {
				name := names[uint32(d.Entry.SwIfIndex)]
				if name == "" {
					left = true
					continue
				}
				out = append(out, &l3.TeibEntry{
					Interface: name, PeerAddr: vppwire.Addr(d.Entry.Peer).String(),
					NextHopAddr: vppwire.Addr(d.Entry.Nh).String(), VrfId: d.Entry.NhTableID,
				})
			}
			if left {
				err = errors.Join(err, h.reclaimOrphans(ctx))
			}
			return out, err
		},
		ID: func(v *l3.TeibEntry) string { return v.GetInterface() + " " + canonical(v.GetPeerAddr()) },
	}
}

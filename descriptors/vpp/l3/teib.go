package l3

import (
	"context"
	"errors"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/teib"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// teibDescriptor implements the tunnel endpoint information base (TEIB): the next hops of
// the peers of a multipoint tunnel.
func (h handler) teibDescriptor() scheduler.Descriptor[*l3.TeibEntry, struct{}] {
	return scheduler.Descriptor[*l3.TeibEntry, struct{}]{
		Name:  TEIBName,
		Model: models.For[*l3.TeibEntry](),

		Normalize: normalizeTEIB,
		Validate:  validateTEIB,
		Equivalent: func(_ string, old, new *l3.TeibEntry) bool {
			return old.GetVrfId() == new.GetVrfId() && sameAddress(old.GetNextHopAddr(), new.GetNextHopAddr())
		},
		Dependencies: teibDependencies,
		Identity:     teibIdentity,

		Create: func(ctx context.Context, _ string, v *l3.TeibEntry) (struct{}, error) {
			// There is no message to change an entry.
			err := h.addTEIB(ctx, v)
			if errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
				err = errors.Join(h.deleteTEIB(ctx, v), h.addTEIB(ctx, v)) // VPP may have an entry with another next hop
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

// teibIdentity returns the identity of an entry: its key in the notation of RFC 5952.
func teibIdentity(_ string, v *l3.TeibEntry) scheduler.Claim {
	return scheduler.Claim{
		Resource: keyOf(&l3.TeibEntry{Interface: v.GetInterface(), PeerAddr: canonical(v.GetPeerAddr())}),
		Field:    "peer_addr", Value: v.GetPeerAddr(), Want: "a peer of this interface that no other entry has",
	}
}

// keyOf returns the key of a valid value.
func keyOf[V proto.Message](v V) string {
	key, _ := models.For[V]().Key(v) // without a key, such as of an invalid value, there is no identity
	return key
}

// validateTEIB checks an entry.
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

// address checks an address of either IP version.
func (f *faults) address(field, text string) {
	if a, err := netip.ParseAddr(text); err != nil || a.Zone() != "" {
		f.Add(field, text, `an address, such as "10.0.0.1" or "fd00::1"`)
	}
}

// sameAddress compares addresses independent of notation.
func sameAddress(a, b string) bool { return canonical(a) == canonical(b) }

// teibDependencies requires the interface and the table of the next hop.
func teibDependencies(_ string, v *l3.TeibEntry) []scheduler.Dependency {
	deps := []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetInterface()).Key()}}
	if v.GetVrfId() != 0 {
		next, _ := netip.ParseAddr(v.GetNextHopAddr())
		deps = append(deps, scheduler.Dependency{Label: "vrf-table-exists", Key: keys.VRFTable(v.GetVrfId(), next.Is6())})
	}
	return deps
}

// addTEIB adds an entry (VPP teib_entry_add_del).
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

// deleteTEIB deletes an entry, also if its interface was deleted.
func (h handler) deleteTEIB(ctx context.Context, v *l3.TeibEntry) error {
	peer, err := netip.ParseAddr(v.GetPeerAddr())
	if err != nil {
		return err
	}
	return h.cleanUp(ctx, v.GetInterface(), h.teibCleanup(peer))
}

// teibCleanup returns the deletion of the entry of a peer.
func (h handler) teibCleanup(peer netip.Addr) cleanup {
	return cleanup{"endpoint " + peer.String(), func(ctx context.Context, at interface_types.InterfaceIndex) error {
		err := h.API.Call(ctx, &teib.TeibEntryAddDel{Entry: teib.TeibEntry{SwIfIndex: at, Peer: vppwire.Address(peer)}}, &teib.TeibEntryAddDelReply{})
		if errors.Is(err, api.NO_SUCH_ENTRY) {
			return nil
		}
		return err
	}}
}

// teibEntries reads entries back, and removes those of deleted interfaces if the read learns.
func (h handler) teibEntries() readback.Retriever[*l3.TeibEntry] {
	return readback.Retriever[*l3.TeibEntry]{
		Read: func(ctx context.Context, learns bool) (out []*l3.TeibEntry, err error) {
			all, err := conn.Dump[teib.TeibDetails](ctx, h.API, &teib.TeibDump{})
			names, unnamed := h.namesByIndex(), false
			for _, d := range all {
				name := names[uint32(d.Entry.SwIfIndex)]
				if name == "" {
					unnamed = true
					continue
				}
				out = append(out, &l3.TeibEntry{
					Interface: name, PeerAddr: vppwire.Addr(d.Entry.Peer).String(),
					NextHopAddr: vppwire.Addr(d.Entry.Nh).String(), VrfId: d.Entry.NhTableID,
				})
			}
			if unnamed && learns {
				err = errors.Join(err, h.reclaimOrphans(ctx))
			}
			return out, err
		},
		ID: func(v *l3.TeibEntry) string { return teibIdentity("", v).Resource },
	}
}

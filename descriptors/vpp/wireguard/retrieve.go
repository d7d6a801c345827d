package wireguard

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"net/netip"

	vppwg "go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/wireguard"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

type found = scheduler.Found[*wireguard.Peer, Meta]

// retrieve yields all peers, and subscribes to their events if it learns: the connection may be a new one. A
// peer on an interface without a name is left out: nobody could declare it.
func (p *Peers) retrieve(ctx context.Context, wanted []scheduler.Desired[*wireguard.Peer]) iter.Seq2[found, error] {
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		existing, err := p.dump(ctx, all)
		if errors.Is(err, scheduler.ErrUnimplemented) {
			return
		}
		if err == nil && len(existing) > 0 && learns {
			err = p.subscribe(ctx, all)
		}
		if err != nil {
			yield(found{}, err)
			return
		}
		declared := make(map[string]scheduler.Desired[*wireguard.Peer], len(wanted))
		for _, w := range wanted {
			declared[w.Value.GetPublicKey()] = w
		}
		names, numbers := p.Interfaces.Names(), map[uint32]string{}
		for _, d := range existing {
			v := valueOf(d, names[uint32(d.SwIfIndex)])
			if v.GetWgIfName() == "" {
				continue
			}
			w, ours := declared[v.GetPublicKey()]
			if ours && w.Value.GetWgIfName() == v.GetWgIfName() {
				asDeclared(v, w.Value, d.Flags)
				numbers[d.PeerIndex] = w.Key
			}
			if !yield(found{Key: w.Key, Value: v, Meta: Meta{d.PeerIndex}, OwnerUnknown: !ours}, nil) {
				return
			}
		}
		if learns {
			p.reset(numbers)
		}
	})
}

// valueOf returns the value of a peer that VPP shows.
func valueOf(d vppwg.WireguardPeer, name string) *wireguard.Peer {
	v := &wireguard.Peer{
		PublicKey: base64.StdEncoding.EncodeToString(d.PublicKey), WgIfName: name,
		Endpoint: vppwire.Addr(d.Endpoint).String(), Port: uint32(d.Port), PersistentKeepalive: uint32(d.PersistentKeepalive),
	}
	for _, network := range d.AllowedIps {
		v.AllowedIps = append(v.AllowedIps, vppwire.PrefixOf(network).String())
	}
	return v
}

// asDeclared gives v the declared endpoint, if it is another notation of the same one, or if the
// peer is established: only its own packets can have changed the endpoint.
func asDeclared(v, declared *wireguard.Peer, flags vppwg.WireguardPeerFlags) {
	is, want := peerOf(v).endpoint, peerOf(declared).endpoint
	same := is.Port() == want.Port() && shown(want.Addr()) == is.Addr()
	if same || flags&vppwg.WIREGUARD_PEER_ESTABLISHED != 0 {
		v.Endpoint, v.Port = declared.GetEndpoint(), declared.GetPort()
	}
}

// shown returns an address as VPP's dump has it. It has no IP version: an IPv6 address below
// ::1:0:0 is shown as IPv4 (VPP wireguard_api.c, IP46_TYPE_ANY).
func shown(a netip.Addr) netip.Addr {
	if b := a.As16(); a.Is6() && [12]byte(b[:12]) == [12]byte{} {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

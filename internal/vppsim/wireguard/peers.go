package wireguard

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// Flags of a peer.
const (
	dead        = wireguard.WIREGUARD_PEER_STATUS_DEAD
	established = wireguard.WIREGUARD_PEER_ESTABLISHED
)

// Peers are the peers of all interfaces. A peer is never established by itself: a test does that.
type Peers struct {
	vpp  *core.VPP
	all  map[uint32]*peer // by number
	free []uint32         // numbers; the one that was freed last is used first
}

// A peer is a peer, and the clients that get its events. Each has given a pid.
type peer struct {
	wireguard.WireguardPeer
	// watchers gets the pid of a subscription back in each event, so a client can tell its own.
	watchers map[*core.Client]uint32
}

// messages returns the messages of peers.
func (p *Peers) messages() []core.Message {
	return []core.Message{
		core.On(p.vpp, func(q *wireguard.WireguardPeerAdd) index { return q.Peer.SwIfIndex }, p.add),
		core.Call(p.remove),
		core.Dump(p.dump),
		core.Call(p.want).With(&wireguard.WireguardPeerEvent{}),
	}
}

// add makes a peer. Its public key is unique in VPP.
func (p *Peers) add(i *core.Interface, q *wireguard.WireguardPeerAdd, r *wireguard.WireguardPeerAddReply) core.Errno {
	r.PeerIndex = core.None
	_, is := i.Device.(device)
	switch {
	case len(q.Peer.AllowedIps) == 0:
		return api.INVALID_VALUE
	case !is:
		return api.INVALID_SW_IF_INDEX
	case p.byKey(q.Peer.PublicKey) != nil:
		return api.ENTRY_ALREADY_EXISTS
	}
	r.PeerIndex = uint32(len(p.all))
	if n := len(p.free); n > 0 {
		r.PeerIndex, p.free = p.free[n-1], p.free[:n-1]
	}
	one := &peer{q.Peer, map[*core.Client]uint32{}}
	one.PeerIndex, one.Flags = r.PeerIndex, 0
	one.PublicKey, one.AllowedIps = slices.Clone(q.Peer.PublicKey), slices.Clone(q.Peer.AllowedIps)
	one.Endpoint = shown(one.Endpoint)
	p.all[r.PeerIndex] = one
	return core.OK
}

// shown returns an endpoint as dumps have it: an IPv6 address below ::1:0:0 looks like an IPv4
// address to VPP (VPP ip46_address.h, ip46_address_is_ip4).
func shown(a ip_types.Address) ip_types.Address {
	if un := a.Un.GetIP6(); a.Af == ip_types.ADDRESS_IP6 && [12]byte(un[:12]) == [12]byte{} {
		return vppwire.Address(netip.AddrFrom4([4]byte(un[12:])))
	}
	return a
}

// byKey returns the peer with a public key on any interface, or nil.
func (p *Peers) byKey(public []byte) *peer {
	for _, one := range p.all {
		if bytes.Equal(one.PublicKey, public) {
			return one
		}
	}
	return nil
}

// remove ends a peer by its number. The number is free for the next peer at once.
func (p *Peers) remove(q *wireguard.WireguardPeerRemove, _ *wireguard.WireguardPeerRemoveReply) core.Errno {
	one := p.all[q.PeerIndex]
	if one == nil {
		return api.NO_SUCH_ENTRY
	}
	p.end(one)
	return core.OK
}

// end removes a peer. VPP sends an event that it is dead.
func (p *Peers) end(one *peer) {
	p.set(one, dead)
	delete(p.all, one.PeerIndex)
	p.free = append(p.free, one.PeerIndex)
}

// set changes the flags of a peer and sends the event. Equal flags send none, as nothing has
// changed for a client.
func (p *Peers) set(one *peer, flags wireguard.WireguardPeerFlags) {
	if one.Flags == flags {
		return
	}
	one.Flags = flags
	for client, pid := range one.watchers {
		p.vpp.Tell(client, &wireguard.WireguardPeerEvent{PID: pid, PeerIndex: one.PeerIndex, Flags: flags})
	}
}

// removing ends the peers of an interface.
func (p *Peers) removing(i *core.Interface) {
	for _, one := range p.all {
		if uint32(one.SwIfIndex) == i.Index {
			p.end(one)
		}
	}
}

// dump lists one peer, or all for ~0.
func (p *Peers) dump(q *wireguard.WireguardPeersDump, yield func(wireguard.WireguardPeersDetails)) {
	for _, number := range slices.Sorted(maps.Keys(p.all)) {
		if q.PeerIndex == core.None || q.PeerIndex == number {
			yield(wireguard.WireguardPeersDetails{Peer: p.all[number].WireguardPeer})
		}
	}
}

// want registers the client for the events of peers that exist: of one, or of all for ~0. Peers
// that are added later need another request, so the agent repeats it for each.
func (p *Peers) want(q *wireguard.WantWireguardPeerEvents, _ *wireguard.WantWireguardPeerEventsReply) core.Errno {
	for number, one := range p.all {
		if q.PeerIndex != core.None && q.PeerIndex != number || uint32(q.SwIfIndex) != core.None && q.SwIfIndex != one.SwIfIndex {
			continue
		}
		delete(one.watchers, p.vpp.Asking())
		if q.EnableDisable != 0 {
			one.watchers[p.vpp.Asking()] = q.PID
		}
	}
	return core.OK
}

// Meet has the peer with a public key (base64) answer from an endpoint: the tunnel is established, and
// VPP sends to that endpoint from now on. An invalid endpoint ends the session.
func (p *Peers) Meet(public string, from netip.AddrPort) error {
	key, err := base64.StdEncoding.DecodeString(public)
	if err != nil {
		return err
	}
	one := p.byKey(key)
	if one == nil {
		return fmt.Errorf("no peer has the public key %s", public)
	}
	if !from.IsValid() {
		p.set(one, 0)
		return nil
	}
	one.Endpoint, one.Port = vppwire.Address(from.Addr()), from.Port()
	p.set(one, established)
	return nil
}

// show prints each peer with its endpoint and networks.
func (p *Peers) show() string {
	var b strings.Builder
	for _, number := range slices.Sorted(maps.Keys(p.all)) {
		one := p.all[number]
		fmt.Fprintf(&b, "%s %s endpoint %s port %d keepalive %d", p.vpp.NameOf(uint32(one.SwIfIndex)),
			base64.StdEncoding.EncodeToString(one.PublicKey), vppwire.Addr(one.Endpoint), one.Port, one.PersistentKeepalive)
		for _, network := range one.AllowedIps {
			fmt.Fprintf(&b, " %s", vppwire.PrefixOf(network))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

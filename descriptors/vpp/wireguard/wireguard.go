// Package wireguard implements the peers of VPP's WireGuard interfaces, and reports their states.
//
//	peers, err := wireguard.Register(s, wireguard.Options{API: manager, Interfaces: links, ...})
//	...
//	go peers.Run(ctx) // beside s.Run
//
// A public key identifies a peer in VPP, on all interfaces together; so a value claims it. VPP has
// no room for an owner: a peer that nobody declares is left alone, unless the agent remembers
// having made it.
//
// A peer can move to another address ("roaming"): VPP then sends to the address from which it
// got the last authenticated packet. Therefore the endpoint of an established peer is VPP's, and
// is no difference to the declared one.
//
// The state of a peer is a key of its own, which no one declares:
//
//	state       | set by                            | meaning
//	HANDSHAKE   | Retrieve, Run                     | no session yet, or it has ended
//	ESTABLISHED | Run, after VPP's event            | packets can pass
//	DEAD        | Run, after VPP's event            | VPP has given it up
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package wireguard

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"go.fd.io/govpp/api"
	vppwg "go.fd.io/govpp/binapi/wireguard"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/wireguard"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	Name      = "vpp-wg-peer"
	StateName = "vpp-wg-peer-state"
)

const (
	// keyBytes is the length of a public key (RFC 7748, X25519).
	keyBytes = 32
	// maxNetworks is the maximum number of allowed networks (VPP wireguard.api, u8).
	maxNetworks = 255
	// device is VPP's device class of the interfaces.
	device = "Wireguard Tunnel"
	// all is the number of all peers (~0).
	all = ^uint32(0)
)

// Options configure the descriptors. All fields are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	Connection string
}

// Meta is the metadata of a peer: its number in VPP (peer_index). VPP gives the number of a deleted
// peer to the next one.
type Meta struct{ Index uint32 }

// Register adds the descriptors to s. The caller registers the interface descriptor first.
func Register(s *scheduler.Scheduler, o Options) (*Peers, error) {
	p := newPeers(o, s.Observe)
	registrar := s.OnConnection(o.Connection)
	_, err := scheduler.Register(registrar, p.descriptor())
	_, errState := scheduler.Register(registrar, p.stateDescriptor())
	return p, errors.Join(err, errState)
}

// descriptor implements the peers. VPP changes none in place.
func (p *Peers) descriptor() scheduler.Descriptor[*wireguard.Peer, Meta] {
	return scheduler.Descriptor[*wireguard.Peer, Meta]{
		Name:  Name,
		Model: models.For[*wireguard.Peer](),

		Normalize:  normalize,
		Validate:   validate,
		Equivalent: func(_ string, old, new *wireguard.Peer) bool { return peerOf(old).equal(peerOf(new)) },
		Dependencies: func(_ string, v *wireguard.Peer) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetWgIfName()).Key()}}
		},
		Claims: func(_ string, v *wireguard.Peer) []scheduler.Claim {
			return []scheduler.Claim{{
				Resource: "vpp-wg-peer/" + v.GetPublicKey(), Field: "public_key", Value: v.GetPublicKey(),
				Want: "a public key that no other peer has, on any interface",
			}}
		},

		Create:        p.create,
		Delete:        p.delete,
		Retrieve:      p.retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

// normalize adds the length of a host to networks without one, removes that of the endpoint, and
// warns of flags: they are a state.
func normalize(_ string, v *wireguard.Peer) (*wireguard.Peer, []string) {
	networks, changed := spelling.Interface(v.GetAllowedIps())
	if !changed && !spelling.HasLength(v.GetEndpoint()) && v.GetFlags() == 0 {
		return v, nil
	}
	v = proto.CloneOf(v)
	v.AllowedIps = networks
	warnings := spelling.Host("endpoint", &v.Endpoint)
	if v.GetFlags() != 0 {
		warnings = append(warnings, models.Ignored("flags", v.GetFlags(), "they are a state of VPP, and cannot be declared"))
		v.Flags = 0
	}
	return v, warnings
}

// validate checks a peer against the limits of VPP's message, which has one byte for the number
// of networks.
func validate(_ string, v *wireguard.Peer) error {
	var f models.Faults
	if key, err := keyOf(v); err != nil || len(key) != keyBytes {
		f.Add("public_key", v.GetPublicKey(), "a key of %d bytes in base64, which has 44 characters", keyBytes)
	}
	if v.GetWgIfName() == "" {
		f.Add("wg_if_name", "", "the name of a WireGuard interface")
	}
	if a, err := netip.ParseAddr(v.GetEndpoint()); err != nil || a.Zone() != "" || a.Is4In6() {
		f.Add("endpoint", v.GetEndpoint(), `an address, such as "10.0.0.1" or "fd00::1"`)
	}
	switch n := len(v.GetAllowedIps()); {
	case n == 0:
		f.Add("allowed_ips", nil, "at least one network")
	case n > maxNetworks:
		f.Add("allowed_ips", fmt.Sprint(n, " networks"), "at most %d", maxNetworks)
	}
	for i, text := range v.GetAllowedIps() {
		if _, err := netip.ParsePrefix(text); err != nil {
			f.Add(fmt.Sprintf("allowed_ips[%d]", i), text, `a network, such as "10.0.0.0/8" or "fd00::/8"`)
		}
	}
	return f.Err()
}

// keyOf decodes the public key. It accepts the standard alphabet with padding only, as "wg pubkey"
// prints it.
func keyOf(v *wireguard.Peer) ([]byte, error) {
	return base64.StdEncoding.Strict().DecodeString(v.GetPublicKey())
}

// A peer is a peer in one notation.
type peer struct {
	key, at  string // public key and name of the interface
	endpoint netip.AddrPort
	// keepalive is in seconds; 0 sends none.
	keepalive uint32
	networks  []netip.Prefix // sorted, without bits of a host
}

// peerOf returns the peer of a valid value.
func peerOf(v *wireguard.Peer) peer {
	out := peer{key: v.GetPublicKey(), at: v.GetWgIfName(), keepalive: v.GetPersistentKeepalive()}
	if a, err := netip.ParseAddr(v.GetEndpoint()); err == nil {
		out.endpoint = netip.AddrPortFrom(a, uint16(v.GetPort()))
	}
	for _, text := range v.GetAllowedIps() {
		if network, err := netip.ParsePrefix(text); err == nil {
			out.networks = append(out.networks, network.Masked())
		}
	}
	slices.SortFunc(out.networks, func(a, b netip.Prefix) int {
		if n := a.Addr().Compare(b.Addr()); n != 0 {
			return n
		}
		return a.Bits() - b.Bits()
	})
	out.networks = slices.Compact(out.networks)
	return out
}

// equal reports whether two peers are the same to VPP. The order of networks and repeated ones
// do not count.
func (p peer) equal(o peer) bool {
	return p.key == o.key && p.at == o.at && p.endpoint == o.endpoint && p.keepalive == o.keepalive && slices.Equal(p.networks, o.networks)
}

// create adds a peer (VPP wireguard_peer_add), and subscribes to its events. If another peer has
// the public key, an earlier request made it whose answer was lost, or somebody else: it is replaced.
func (p *Peers) create(ctx context.Context, key string, v *wireguard.Peer) (Meta, error) {
	link, err := iface.Find(p.Interfaces, v.GetWgIfName())
	if err != nil {
		return Meta{}, err
	}
	if link.DevType != device {
		return Meta{}, fmt.Errorf("interface %s is a %s; expected one of type WIREGUARD_TUNNEL", v.GetWgIfName(), link.DevType)
	}
	request, err := requestOf(v, link)
	if err != nil {
		return Meta{}, err
	}
	reply := &vppwg.WireguardPeerAddReply{}
	err = p.API.Call(ctx, request, reply)
	if errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
		if err = p.removeKey(ctx, request.Peer.PublicKey); err == nil {
			err = p.API.Call(ctx, request, reply)
		}
	}
	if err != nil {
		return Meta{}, err
	}
	p.known(reply.PeerIndex, key)
	return Meta{reply.PeerIndex}, p.subscribe(ctx, reply.PeerIndex)
}

// requestOf returns the request that adds a peer.
func requestOf(v *wireguard.Peer, link iface.Meta) (*vppwg.WireguardPeerAdd, error) {
	public, err := keyOf(v)
	if err != nil {
		return nil, err
	}
	is := peerOf(v)
	out := vppwg.WireguardPeer{
		PublicKey: public, SwIfIndex: link.SwIfIndex(), PersistentKeepalive: uint16(is.keepalive),
		Endpoint: vppwire.Address(is.endpoint.Addr()), Port: is.endpoint.Port(),
	}
	for _, network := range is.networks {
		out.AllowedIps = append(out.AllowedIps, vppwire.Prefix(network))
	}
	return &vppwg.WireguardPeerAdd{Peer: out}, nil
}

// removeKey removes the peer with a public key.
func (p *Peers) removeKey(ctx context.Context, public []byte) error {
	existing, err := p.dump(ctx, all)
	for _, d := range existing {
		if slices.Equal(d.PublicKey, public) {
			return p.remove(ctx, d.PeerIndex)
		}
	}
	return err
}

// delete removes a peer. Its number may belong to another peer meanwhile, if somebody else has
// removed it.
func (p *Peers) delete(ctx context.Context, key string, v *wireguard.Peer, meta Meta) error {
	public, err := keyOf(v)
	if err != nil {
		return err
	}
	existing, err := p.dump(ctx, meta.Index)
	if err != nil {
		return err
	}
	p.gone(key)
	if len(existing) == 0 || !slices.Equal(existing[0].PublicKey, public) {
		return nil
	}
	return p.remove(ctx, meta.Index)
}

// remove removes the peer with a number, if there is one.
func (p *Peers) remove(ctx context.Context, number uint32) error {
	err := p.API.Call(ctx, &vppwg.WireguardPeerRemove{PeerIndex: number}, &vppwg.WireguardPeerRemoveReply{})
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	return err
}

// dump returns one peer, or all.
func (p *Peers) dump(ctx context.Context, number uint32) ([]vppwg.WireguardPeer, error) {
	details, err := conn.Dump[vppwg.WireguardPeersDetails](ctx, p.API, &vppwg.WireguardPeersDump{PeerIndex: number})
	out := make([]vppwg.WireguardPeer, 0, len(details))
	for _, d := range details {
		out = append(out, d.Peer)
	}
	return out, err
}

// subscribe requests the events of one peer, or of all that exist. To do so again changes nothing.
func (p *Peers) subscribe(ctx context.Context, number uint32) error {
	return p.API.Call(ctx, &vppwg.WantWireguardPeerEvents{
		SwIfIndex: ifindex.All, PeerIndex: number, EnableDisable: 1, PID: uint32(os.Getpid()),
	}, &vppwg.WantWireguardPeerEventsReply{})
}

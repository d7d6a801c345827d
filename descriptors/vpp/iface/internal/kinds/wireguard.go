package kinds

import (
	"context"
	"encoding/base64"

	"go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// keyBytes is the length of a key (RFC 7748, X25519).
const keyBytes = 32

// wireguardKind is the kind of WIREGUARD_TUNNEL. Its peers are separate values. Errors and
// logs never have the private key.
func wireguardKind() Kind {
	return Kind{
		Link:  "wireguard",
		NoMAC: true, NoMTU: true,
		Validate: func(f *Findings, v *interfaces.Interface) {
			w := v.GetWireguard()
			if key, err := wireguardKey(w); err != nil || len(key) != keyBytes {
				f.Add("wireguard.private_key", "(secret)", "a key of %d bytes in base64, which has 44 characters", keyBytes)
			}
			f.own("wireguard.src_addr", w.GetSrcAddr())
		},
		SameLink: func(old, new *interfaces.Interface) bool {
			a, b := old.GetWireguard(), new.GetWireguard()
			return a.GetPrivateKey() == b.GetPrivateKey() && a.GetPort() == b.GetPort() && sameEnd(a.GetSrcAddr(), b.GetSrcAddr())
		},
		Create: createWireguard,
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return e.API.Call(ctx, &wireguard.WireguardInterfaceDelete{SwIfIndex: meta.SwIfIndex()}, &wireguard.WireguardInterfaceDeleteReply{})
		},
		Retrieve: retrieveWireguards,
	}
}

// wireguardKey decodes the private key. It accepts the standard alphabet with padding
// only, as "wg genkey" prints it.
func wireguardKey(w *interfaces.WireguardLink) ([]byte, error) {
	return base64.StdEncoding.Strict().DecodeString(w.GetPrivateKey())
}

// createWireguard leaves the public key zero: VPP computes it from the private one.
func createWireguard(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	w := v.GetWireguard()
	key, err := wireguardKey(w)
	if err != nil {
		return 0, err
	}
	reply := &wireguard.WireguardInterfaceCreateReply{}
	err = e.API.Call(ctx, &wireguard.WireguardInterfaceCreate{Interface: wireguard.WireguardInterface{
		UserInstance: ^uint32(0), SwIfIndex: ifindex.All, PrivateKey: key, PublicKey: make([]byte, keyBytes), Port: uint16(w.GetPort()), SrcIP: wireAddress(w.GetSrcAddr()),
	}}, reply)
	return uint32(reply.SwIfIndex), err
}

// retrieveWireguards asks for the private keys, without which a changed key would go
// unnoticed.
func retrieveWireguards(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "Wireguard Tunnel") {
		return nil
	}
	details, err := conn.Dump[wireguard.WireguardInterfaceDetails](ctx, e.API, &wireguard.WireguardInterfaceDump{ShowPrivateKey: true, SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.Interface.SwIfIndex)]
		if f == nil {
			continue
		}
		f.Value.Type, f.Value.Link = interfaces.Interface_WIREGUARD_TUNNEL, &interfaces.Interface_Wireguard{Wireguard: &interfaces.WireguardLink{
			PrivateKey: base64.StdEncoding.EncodeToString(d.Interface.PrivateKey), Port: uint32(d.Interface.Port),
			SrcAddr: addressText(d.Interface.SrcIP, f.Desired.GetWireguard().GetSrcAddr()),
		}}
	}
	return err
}

package iface

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

// wireguardKind is the kind of WIREGUARD_TUNNEL. Its peers are values of their own.
func wireguardKind() kind {
	return kind{
		link:  "wireguard",
		noMAC: true, noMTU: true,
		validate: func(f *findings, v *interfaces.Interface) {
			w := v.GetWireguard()
			if key, err := wireguardKey(w); err != nil || len(key) != keyBytes {
				f.Add("wireguard.private_key", "(secret)", "a key of %d bytes in base64, which has 44 characters", keyBytes)
			}
			if w.GetPort() > 1<<16-1 {
				f.Add("wireguard.port", w.GetPort(), "at most 65535")
			}
			f.own("wireguard.src_addr", w.GetSrcAddr())
		},
		sameLink: func(old, new *interfaces.Interface) bool {
			a, b := old.GetWireguard(), new.GetWireguard()
			return a.GetPrivateKey() == b.GetPrivateKey() && a.GetPort() == b.GetPort() && sameEnd(a.GetSrcAddr(), b.GetSrcAddr())
		},
		create: createWireguard,
		delete: func(ctx context.Context, h *handler, _ *interfaces.Interface, meta Meta) error {
			return h.API.Call(ctx, &wireguard.WireguardInterfaceDelete{SwIfIndex: meta.SwIfIndex()}, &wireguard.WireguardInterfaceDeleteReply{})
		},
		retrieve: retrieveWireguards,
	}
}

func wireguardKey(w *interfaces.WireguardLink) ([]byte, error) {
	return base64.StdEncoding.Strict().DecodeString(w.GetPrivateKey())
}

func createWireguard(ctx context.Context, h *handler, v *interfaces.Interface) (uint32, error) {
	w := v.GetWireguard()
	key, err := wireguardKey(w)
	if err != nil {
		return 0, err
	}
	reply := &wireguard.WireguardInterfaceCreateReply{}
	err = h.API.Call(ctx, &wireguard.WireguardInterfaceCreate{Interface: wireguard.WireguardInterface{
		UserInstance: ^uint32(0), SwIfIndex: ifindex.All, PrivateKey: key, PublicKey: make([]byte, keyBytes), Port: uint16(w.GetPort()), SrcIP: wireAddress(w.GetSrcAddr()),
	}}, reply)
	return uint32(reply.SwIfIndex), err
}

func retrieveWireguards(ctx context.Context, h *handler, all map[uint32]*found) error {
	if !anyOf(all, "Wireguard Tunnel") {
		return nil
	}
	details, err := conn.Dump[wireguard.WireguardInterfaceDetails](ctx, h.API, &wireguard.WireguardInterfaceDump{ShowPrivateKey: true, SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.Interface.SwIfIndex)]
		if f == nil {
			continue
		}
		f.value.Type, f.value.Link = interfaces.Interface_WIREGUARD_TUNNEL, &interfaces.Interface_Wireguard{Wireguard: &interfaces.WireguardLink{
			PrivateKey: base64.StdEncoding.EncodeToString(d.Interface.PrivateKey), Port: uint32(d.Interface.Port),
			SrcAddr: addressText(d.Interface.SrcIP, f.wanted.GetWireguard().GetSrcAddr()),
		}}
	}
	return err
}

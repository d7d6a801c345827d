package kinds

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// ipsecKind is the kind of IPSEC_TUNNEL. Security associations, which are other values,
// make it a tunnel. The deprecated fields of the link for these have no effect.
func ipsecKind() Kind {
	return Kind{
		Link:  "ipsec",
		NoMAC: true, NoMTU: true,
		Validate: func(f *Findings, v *interfaces.Interface) {
			if mode := ipsecMode(v); interfaces.IPSecLink_Mode_name[int32(mode)] == "" {
				f.Add("ipsec.tunnel_mode", int32(mode), "POINT_TO_POINT or POINT_TO_MULTIPOINT")
			}
		},
		SameLink: func(old, new *interfaces.Interface) bool { return ipsecMode(old) == ipsecMode(new) },
		// VPP and the model number modes in the same way.
		Create: createIPsec,
		Marked: func(_ *Env, f *Found, v *interfaces.Interface) bool {
			return f.Details.InterfaceName == fmt.Sprint("ipsec", ipsecNumber(v))
		},
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return e.API.Call(ctx, &ipsec.IpsecItfDelete{SwIfIndex: meta.SwIfIndex()}, &ipsec.IpsecItfDeleteReply{})
		},
		Retrieve: retrieveIPsecs,
	}
}

// ipsecMode returns the mode of the deprecated link; without a link, POINT_TO_POINT.
func ipsecMode(v *interfaces.Interface) interfaces.IPSecLink_Mode {
	return v.GetIpsec().GetTunnelMode() //nolint:staticcheck // the link is deprecated for what else it has
}

// ipsecNumber returns the instance number of an interface, derived from its name. It is in
// the upper half of VPP's numbers (VPP ipsec_itf.c). VPP chooses automatic numbers from
// the lower half first.
func ipsecNumber(v *interfaces.Interface) uint32 {
	// VPP has 16 Ki instances.
	const half = 8 * 1024
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(v.GetName()))
	return half + sum.Sum32()%half
}

// createIPsec lets VPP choose the number if another interface has the one of the name.
func createIPsec(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	create := func(number uint32) (uint32, error) {
		reply := &ipsec.IpsecItfCreateReply{}
		err := e.API.Call(ctx, &ipsec.IpsecItfCreate{
			Itf: ipsec.IpsecItf{UserInstance: number, Mode: tunnel_types.TunnelMode(ipsecMode(v)), SwIfIndex: ifindex.All},
		}, reply)
		return uint32(reply.SwIfIndex), err
	}
	index, err := create(ipsecNumber(v))
	if errors.Is(err, api.INVALID_REGISTRATION) {
		return create(^uint32(0))
	}
	return index, err
}

// retrieveIPsecs lists IPsec interfaces.
func retrieveIPsecs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "IPSEC Tunnel") {
		return nil
	}
	details, err := conn.Dump[ipsec.IpsecItfDetails](ctx, e.API, &ipsec.IpsecItfDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		if f := all[uint32(d.Itf.SwIfIndex)]; f != nil {
			f.Value.Type, f.Value.Link = interfaces.Interface_IPSEC_TUNNEL, &interfaces.Interface_Ipsec{
				Ipsec: &interfaces.IPSecLink{TunnelMode: interfaces.IPSecLink_Mode(d.Itf.Mode)}, //nolint:staticcheck // as above
			}
		}
	}
	return err
}

package punt

import (
	"context"
	"iter"

	"go.fd.io/govpp/binapi/ip_types"
	vpppunt "go.fd.io/govpp/binapi/punt"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/scheduler"
)

// hostDescriptor implements the sockets for UDP ports.
func (h *handler) hostDescriptor() scheduler.Descriptor[*punt.ToHost, struct{}] {
	return scheduler.Descriptor[*punt.ToHost, struct{}]{
		Name:  HostName,
		Model: models.For[*punt.ToHost](),

		Validate: validateHost,
		Claims: func(_ string, v *punt.ToHost) (out []scheduler.Claim) {
			for _, version := range versionsOf(v.GetL3Protocol()) {
				out = append(out, scheduler.Claim{
					Resource: "vpp-punt/" + []string{"ipv4", "ipv6"}[version] + "/udp/" + decimal(v.GetPort()), Field: "port", Value: decimal(v.GetPort()),
					Want: "a port without another value for the same IP version",
				})
			}
			return out
		},
		Resolve: resolveHost,
		Parts: func(_ string, v *punt.ToHost) []*punt.ToHost {
			return partsOf(v, v.GetL3Protocol(), func(v *punt.ToHost, l3 punt.L3Protocol) { v.L3Protocol = l3 })
		},

		Create: func(ctx context.Context, _ string, v *punt.ToHost) (struct{}, error) {
			return struct{}{}, h.toHost(ctx, v)
		},
		Update: func(ctx context.Context, _ string, _, v *punt.ToHost, _ struct{}) (struct{}, error) {
			return struct{}{}, h.toHost(ctx, v)
		},
		Delete: func(ctx context.Context, _ string, v *punt.ToHost, _ struct{}) error {
			for _, version := range versionsOf(v.GetL3Protocol()) {
				if err := h.deregister(ctx, portOf(v, version)); err != nil {
					return err
				}
			}
			return nil
		},
		Retrieve: h.retrieveHost,
	}
}

// validateHost checks a value. VPP answers these errors with one number, which could not name
// the field.
func validateHost(_ string, v *punt.ToHost) error {
	var f models.Faults
	if len(versionsOf(v.GetL3Protocol())) == 0 {
		f.Add("l3_protocol", v.GetL3Protocol().String(), "IPV4, IPV6 or ALL")
	}
	if v.GetL4Protocol() != punt.L4Protocol_UDP {
		f.Add("l4_protocol", v.GetL4Protocol().String(), "UDP: VPP punts no other protocol to sockets")
	}
	checkPath(&f, v.GetSocketPath())
	return f.Err()
}

// resolveHost returns a value for both IP versions: that is found if nobody declares them, and
// both go to the same socket.
func resolveHost(_ string, v *punt.ToHost) *punt.ToHost {
	if v.GetL3Protocol() == punt.L3Protocol_ALL {
		return v
	}
	v = proto.CloneOf(v)
	v.L3Protocol = punt.L3Protocol_ALL
	return v
}

// portOf returns the packets of a value in one IP version.
func portOf(v *punt.ToHost, version int) vpppunt.Punt {
	return vpppunt.Punt{Type: vpppunt.PUNT_API_TYPE_L4, Punt: vpppunt.PuntUnionL4(vpppunt.PuntL4{
		Af: family(version), Protocol: ip_types.IP_API_PROTO_UDP, Port: uint16(v.GetPort()),
	})}
}

// toHost registers the socket of a value, or gives the registration another socket.
func (h *handler) toHost(ctx context.Context, v *punt.ToHost) error {
	for _, version := range versionsOf(v.GetL3Protocol()) {
		if err := h.register(ctx, portOf(v, version), v.GetSocketPath()); err != nil {
			return err
		}
	}
	return nil
}

// readHost returns the paths of sockets by UDP port.
func (h *handler) readHost(ctx context.Context) (map[uint32]*pair[string], error) {
	all, err := h.registered(ctx, vpppunt.PUNT_API_TYPE_L4)
	out := map[uint32]*pair[string]{}
	for _, d := range all {
		l4 := d.Punt.Punt.GetL4()
		if l4.Protocol != ip_types.IP_API_PROTO_UDP || l4.Af > ip_types.ADDRESS_IP6 {
			continue // messages of ICMPv6, which the model does not have
		}
		port := uint32(l4.Port)
		if out[port] == nil {
			out[port] = &pair[string]{}
		}
		out[port][l4.Af] = &d.Pathname
	}
	return out, err
}

// retrieveHost yields declared values first, in their own spelling. The remaining registrations
// follow with an unknown owner, because VPP stores none.
func (h *handler) retrieveHost(ctx context.Context, wanted []scheduler.Desired[*punt.ToHost]) iter.Seq2[scheduler.Found[*punt.ToHost, struct{}], error] {
	type found = scheduler.Found[*punt.ToHost, struct{}]
	return func(yield func(found, error) bool) {
		all, err := h.readHost(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		value := func(l3 punt.L3Protocol, port uint32, path string) *punt.ToHost {
			return &punt.ToHost{L3Protocol: l3, L4Protocol: punt.L4Protocol_UDP, Port: port, SocketPath: path}
		}
		for _, w := range wanted {
			at := all[w.Value.GetPort()]
			if at == nil {
				continue
			}
			path, ok := at.take(w.Value.GetL3Protocol())
			if ok && !yield(found{Key: w.Key, Value: value(w.Value.GetL3Protocol(), w.Value.GetPort(), path)}, nil) {
				return
			}
		}
		for port, at := range all {
			for l3, path := range at.rest() {
				if !yield(found{Value: value(l3, port, path), OwnerUnknown: true}, nil) {
					return
				}
			}
		}
	}
}

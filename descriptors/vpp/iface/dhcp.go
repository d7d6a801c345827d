package iface

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/events"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/tables"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// clientDescriptor runs a DHCP client on an interface. The client is started in the
// desired VRF, as VPP does not move an interface with an address to another VRF. It has no
// Retrieve: the interface lists its client.
func (h *handler) clientDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:   DHCPName,
		Prefix: keys.DHCPClients,

		Dependencies: func(key string, _ *emptypb.Empty) []scheduler.Dependency {
			return []scheduler.Dependency{inVRF(clientOf(key), tables.IsForIPv4)}
		},
		Create: func(ctx context.Context, key string, _ *emptypb.Empty) (struct{}, error) {
			return struct{}{}, h.setClient(ctx, clientOf(key), true)
		},
		Delete: func(ctx context.Context, key string, _ *emptypb.Empty, _ struct{}) error {
			err := h.setClient(ctx, clientOf(key), false)
			if errors.Is(err, api.INVALID_SW_IF_INDEX) || errors.Is(err, kinds.ErrNotThere) {
				return nil
			}
			return err
		},
	}
}

// clientOf returns the name of the interface in a key of a client.
func clientOf(key string) string { return key[len(keys.DHCPClients):] }

// setClient starts or stops the client. A client that is already running may have been
// started for a deleted interface with the same index. So it is restarted. VPP dies of a
// client on an interface without a MAC address.
func (h *handler) setClient(ctx context.Context, name string, on bool) error {
	if _, err := h.API.First(&dhcp.DHCPClientDetails{}); err != nil {
		return err // leases could not be read
	}
	meta, ok := h.index.Get(name)
	if !ok {
		return kinds.NotThere(name)
	}
	config := func(on bool) error {
		client := dhcp.DHCPClient{SwIfIndex: meta.SwIfIndex(), Hostname: name, WantDHCPEvent: true}
		return h.API.Call(ctx, &dhcp.DHCPClientConfig{IsAdd: on, Client: client}, &dhcp.DHCPClientConfigReply{})
	}
	if on {
		if err := kinds.NeedMAC(ctx, h.API, name, meta.SwIfIndex(), "a DHCP client"); err != nil {
			return err
		}
	}
	stop := func() error { return unlessUnchanged(config(false)) }
	start := func() error {
		err := config(true)
		if errors.Is(err, errUnchanged) {
			err = errors.Join(stop(), config(true))
		}
		return err
	}
	var err error
	if on {
		err = h.leftovers.Set(meta.Index, name, clientMark, h.endClient, start)
	} else {
		err = h.leftovers.End(meta.Index, clientMark, stop)
	}
	if err == nil {
		h.leases.Wake()
	}
	return err
}

// errUnchanged is VPP's error for a request that starts a running client, or stops none.
var errUnchanged error = api.INVALID_VALUE

// unlessUnchanged returns err, or nil if no client was there to be stopped.
func unlessUnchanged(err error) error {
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// clientMark names the client among the leftovers of an index. VPP keeps a client running for the
// next interface with the index.
const clientMark = "DHCP client"

// endClient stops the client of an index, which may belong to no interface any more.
func (h *handler) endClient(ctx context.Context, at interface_types.InterfaceIndex) error {
	return unlessUnchanged(h.API.Call(ctx, &dhcp.DHCPClientConfig{Client: dhcp.DHCPClient{SwIfIndex: at}}, &dhcp.DHCPClientConfigReply{}))
}

// dhcpClients returns VPP's DHCP clients with their leases.
func dhcpClients(ctx context.Context, a conn.API) ([]dhcp.DHCPClientDetails, error) {
	if !a.Has(&dhcp.DHCPClientDetails{}) {
		return nil, nil
	}
	return conn.Dump[dhcp.DHCPClientDetails](ctx, a, &dhcp.DHCPClientDump{})
}

// leaseDescriptor observes DHCP leases. A lease is only observed. Its address is derived
// from it, so values can depend on the address, and interfaces can borrow it.
func (h *handler) leaseDescriptor() scheduler.Descriptor[*interfaces.DHCPLease, struct{}] {
	return scheduler.Descriptor[*interfaces.DHCPLease, struct{}]{
		Name:   LeaseName,
		Prefix: keys.DHCPLeases,

		Properties: []string{keys.Parts}, // addresses, after the name of the interface
		Derived: func(_ string, v *interfaces.DHCPLease) []scheduler.KeyValue {
			address := keys.Address{Interface: v.GetInterfaceName(), Source: keys.FromDHCP, Addr: v.GetHostIpAddress()}
			return []scheduler.KeyValue{{Key: address.Key(), Value: &emptypb.Empty{}}}
		},
		Retrieve:      h.retrieveLeases,
		RetrieveAfter: []string{Name},
	}
}

// retrieveLeases yields the leases that VPP has now. They are Foreign: the DHCP server
// gives and takes them.
func (h *handler) retrieveLeases(ctx context.Context, _ []scheduler.Desired[*interfaces.DHCPLease]) scheduler.Retrieved[*interfaces.DHCPLease, struct{}] {
	type found = scheduler.Found[*interfaces.DHCPLease, struct{}]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		leases, err := h.leases.Read(ctx, learns)
		if err != nil {
			yield(found{}, err)
			return
		}
		if learns {
			h.leases.Wake() // read again soon, and then periodically while there are clients
		}
		for name, v := range leases {
			if !yield(found{Key: keys.Interface(name).DHCPLease(), Value: v, Foreign: true}, nil) {
				return
			}
		}
	})
}

// NamesByIndex returns the names of interfaces by index.
func NamesByIndex(all map[string]Meta) map[uint32]string {
	out := make(map[uint32]string, len(all))
	for name, meta := range all {
		out[meta.Index] = name
	}
	return out
}

// listLeases asks VPP for the leases of interfaces that have names, and whether it runs clients.
func (h *handler) listLeases(ctx context.Context) (leases map[string]*interfaces.DHCPLease, running bool, err error) {
	clients, err := dhcpClients(ctx, h.API)
	if err != nil {
		return nil, false, err
	}
	names := NamesByIndex(h.index.All())
	leases = map[string]*interfaces.DHCPLease{}
	for _, c := range clients {
		name := names[uint32(c.Client.SwIfIndex)]
		// A client on an interface of another agent has no name here, and its lease is not
		// ours.
		if v := events.LeaseOf(name, c.Lease); v != nil && name != "" {
			leases[name] = v
		}
	}
	return leases, len(clients) > 0, nil
}

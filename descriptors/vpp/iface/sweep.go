package iface

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// clientRuns notes whether a DHCP client of ours runs on an index.
func (h *handler) clientRuns(index uint32, name string, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !on {
		delete(h.clients, index)
		return
	}
	if h.clients == nil {
		h.clients = map[uint32]string{}
	}
	h.clients[index] = name
}

// endClient ends the DHCP client that an interface which somebody has deleted has left: VPP
// has it run on whoever gets the index next, and does not let go of it before.
func (h *handler) endClient(ctx context.Context, index uint32) error {
	h.mu.Lock()
	name, runs := h.clients[index]
	h.mu.Unlock()
	if !runs {
		return nil
	}
	at := interface_types.InterfaceIndex(index)
	if stands, err := hasName(ctx, h.API, at, name); stands || err != nil {
		return err
	}
	err := h.API.Call(ctx, &dhcp.DHCPClientConfig{Client: dhcp.DHCPClient{SwIfIndex: at}}, &dhcp.DHCPClientConfigReply{})
	switch {
	case errors.Is(err, api.INVALID_SW_IF_INDEX):
		return nil // nobody has got the index yet
	case err != nil && !errors.Is(err, api.INVALID_VALUE):
		return err
	}
	h.clientRuns(index, name, false)
	return nil
}

// hasName tells whether VPP has an interface of that index and name.
func hasName(ctx context.Context, a conn.API, index interface_types.InterfaceIndex, name string) (bool, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: index})
	return len(all) == 1 && tags(nil).nameOf(all[0]) == name, err
}

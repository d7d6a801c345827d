// Package netalloc stores the addresses that networks have allocated. Values of Linux and
// VPP refer to them: "alloc:net1".
//
//	book, err := netalloc.Register(s)
//	a, ok := book.Get("network/net1/interface/if1")
//
// An allocation exists in no southbound: it is applied as soon as it is declared. Values
// that refer to it depend on it, and are re-created when it changes. Package alloc parses
// references.
package netalloc

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/netalloc"
	"github.com/keyplane/keyplane/scheduler"
)

// Register adds the descriptor to s, and returns the applied allocations.
func Register(s *scheduler.Scheduler) (alloc.Book, error) {
	h := &handler{current: map[string]*netalloc.IPAllocation{}}
	index, err := scheduler.Register(s, h.descriptor())
	if err != nil {
		return nil, fmt.Errorf("netalloc: %w", err)
	}
	return index, nil
}

// handler keeps the applied allocations: no southbound has them.
type handler struct {
	mu      sync.Mutex // guards current
	current map[string]*netalloc.IPAllocation
}

// descriptor returns the descriptor. There is no Update: a changed allocation is
// re-created, and so are the values that refer to it.
func (h *handler) descriptor() scheduler.Descriptor[*netalloc.IPAllocation, alloc.Allocation] {
	return scheduler.Descriptor[*netalloc.IPAllocation, alloc.Allocation]{
		Name:  alloc.Descriptor,
		Model: models.For[*netalloc.IPAllocation](),

		Validate:   validate,
		Derived:    derived,
		Properties: []string{alloc.NeighGateways},

		Referenced: true,

		Create: func(_ context.Context, key string, v *netalloc.IPAllocation) (alloc.Allocation, error) {
			h.set(key, v)
			return allocation(v), nil
		},
		Delete: func(_ context.Context, key string, _ *netalloc.IPAllocation, _ alloc.Allocation) error {
			h.set(key, nil)
			return nil
		},
		Retrieve: h.retrieve,
	}
}

// set records or removes an applied allocation.
func (h *handler) set(key string, v *netalloc.IPAllocation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.current, key)
	if v != nil {
		h.current[key] = v
	}
}

// retrieve yields the desired allocations as they are applied. A changed one is yielded
// with its old address, so that values that refer to it are re-created. One that was not
// created since the start counts as applied, because values that refer to it may exist
// already.
func (h *handler) retrieve(_ context.Context, wanted []scheduler.Desired[*netalloc.IPAllocation]) scheduler.Retrieved[*netalloc.IPAllocation, alloc.Allocation] {
	return func(yield func(scheduler.Found[*netalloc.IPAllocation, alloc.Allocation], error) bool) {
		for _, w := range wanted {
			v := h.as(w)
			learned := func() { h.set(w.Key, v) }
			if !yield(scheduler.Found[*netalloc.IPAllocation, alloc.Allocation]{Key: w.Key, Value: v, Meta: allocation(v), Learned: learned}, nil) {
				return
			}
		}
	}
}

// as returns the applied allocation of w.
func (h *handler) as(w scheduler.Desired[*netalloc.IPAllocation]) *netalloc.IPAllocation {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.current[w.Key]; v != nil {
		return v
	}
	return w.Value
}

// faults collects the errors of a value.
type faults struct{ models.Faults }

// validate checks an allocation. A slash in the name of a network would make
// references ambiguous.
func validate(_ string, v *netalloc.IPAllocation) error {
	var f faults
	if name := v.GetNetworkName(); name == "" || strings.Contains(name, "/") {
		f.Add("network_name", name, "a name without slashes")
	}
	if v.GetInterfaceName() == "" {
		f.Add("interface_name", "", "the name of an interface")
	}
	address, ok := parse(v.GetAddress())
	if !ok {
		f.Add("address", v.GetAddress(), `an address, such as "10.0.0.1/24" or "fd00::1"`)
	}
	gw, gwOK := parse(v.GetGw())
	switch {
	case v.GetGw() == "":
	case !gwOK:
		f.Add("gw", v.GetGw(), `an address, such as "10.0.0.254", or nothing`)
	case ok && gw.Addr().Is4() != address.Addr().Is4():
		f.Add("gw", v.GetGw(), "an address of the same IP version as address")
	}
	return f.Err()
}

// parse parses an address. One without a prefix length belongs to a single host.
func parse(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	a, err := netip.ParseAddr(text)
	return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == ""
}

// allocation returns the parsed addresses of a valid value.
func allocation(v *netalloc.IPAllocation) alloc.Allocation {
	address, _ := parse(v.GetAddress())
	gw, _ := parse(v.GetGw())
	return alloc.Allocation{Address: address, Gateway: gw}
}

// derived returns a property if the gateway is in the subnet of the address.
func derived(_ string, v *netalloc.IPAllocation) []scheduler.KeyValue {
	a := allocation(v)
	if !a.Gateway.IsValid() || !a.Address.Masked().Contains(a.Gateway.Addr()) {
		return nil
	}
	return []scheduler.KeyValue{{Key: alloc.NeighGateway(v.GetNetworkName(), v.GetInterfaceName()), Value: &emptypb.Empty{}}}
}

package iface

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// hasAddressDescriptor is a value without an effect in VPP. It is applied while the interface has any address. Borrowers depend on the one of their lender.
func (h *handler) hasAddressDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	nothing := func(context.Context, string, *emptypb.Empty) (struct{}, error) { return struct{}{}, nil }
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:   HasAddressName,
		Prefix: keys.Parts,
		Match:  func(key string) bool { _, ok := keys.ParseHasAddress(key); return ok },

		Dependencies: func(key string, _ *emptypb.Empty) []scheduler.Dependency {
			name, _ := keys.ParseHasAddress(key)
			return []scheduler.Dependency{{Label: "interface-has-IP", Prefixes: []string{keys.Interface(name).Addresses()}}}
		},
		Create:        nothing,
		Delete:        func(context.Context, string, *emptypb.Empty, struct{}) error { return nil },
		Retrieve:      h.retrieveAddressed,
		RetrieveAfter: []string{Name},
	}
}

// retrieveAddressed yields the keys of those interfaces that had an address when they were read last. They are not
// derived from what was read: a DHCP client, which makes such a key, may have no lease.
func (h *handler) retrieveAddressed(_ context.Context, _ []scheduler.Desired[*emptypb.Empty]) scheduler.Retrieved[*emptypb.Empty, struct{}] {
	type found = scheduler.Found[*emptypb.Empty, struct{}]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		for _, f := range h.addressed.all(learns) {
			if !yield(found{Key: keys.Interface(f.name).HasAddress(), Value: &emptypb.Empty{}, Foreign: f.foreign, OwnerUnknown: f.unknown}, nil) {
				return
			}
		}
	})
}

// An addressed interface has an address.
type addressed struct {
	name             string
	foreign, unknown bool // as for the interface
}

// addressedSet has the addressed interfaces of the last read that counts, and those of a look since.
type addressedSet struct {
	mu           sync.Mutex // guards all fields
	read, looked map[string]addressed
}

// remember stores which of the interfaces that were read have an address; whole: there are no others.
func (s *addressedSet) remember(h *handler, all []*kinds.Found, whole, learns bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	into := maps.Clone(s.read)
	if into == nil || whole {
		into = map[string]addressed{}
	}
	for _, f := range all {
		if f.Skipped {
			continue
		}
		name := f.Value.GetName()
		delete(into, name)
		if len(f.Value.GetIpAddresses()) > 0 || f.Leased.IsValid() {
			into[name] = addressed{name, h.isForeign(f), h.isUnknown(f)}
		}
	}
	s.looked = into
	if learns {
		s.read, s.looked = into, nil
	}
}

// all returns the addressed interfaces in order. Only looks get what a look has shown.
func (s *addressedSet) all(learns bool) (out []addressed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.read
	if !learns && s.looked != nil {
		from = s.looked
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		out = append(out, from[name])
	}
	return out
}

// unnumberedDescriptor lets an interface borrow the address of another one. VPP calls such
// an interface unnumbered. It has no Retrieve: the interface lists its lender.
func (h *handler) unnumberedDescriptor() scheduler.Descriptor[*interfaces.Interface_Unnumbered, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface_Unnumbered, struct{}]{
		Name:   UnnumberedName,
		Prefix: keys.Unnumbereds,

		Dependencies: func(key string, v *interfaces.Interface_Unnumbered) []scheduler.Dependency {
			return []scheduler.Dependency{
				{Label: "unnumbered-interface-has-IP", Key: keys.Interface(v.GetInterfaceWithIp()).HasAddress()},
				inVRF(borrowerOf(key), nil),
			}
		},
		Claims: unnumberedClaims,
		Create: func(ctx context.Context, key string, v *interfaces.Interface_Unnumbered) (struct{}, error) {
			return struct{}{}, h.setUnnumbered(ctx, key, v, true)
		},
		Update: func(ctx context.Context, key string, _, v *interfaces.Interface_Unnumbered, _ struct{}) (struct{}, error) {
			return struct{}{}, h.setUnnumbered(ctx, key, v, true)
		},
		Delete: func(ctx context.Context, key string, v *interfaces.Interface_Unnumbered, _ struct{}) error {
			err := h.setUnnumbered(ctx, key, v, false)
			if errors.Is(err, api.INVALID_SW_IF_INDEX) || errors.Is(err, kinds.ErrNotThere) {
				return nil
			}
			return err
		},
	}
}

// borrowerOf returns the name of the borrower in a key.
func borrowerOf(key string) string { return key[len(keys.Unnumbereds):] }

// setUnnumbered sets or removes the lender of an interface; the last lender counts. In
// VPP's message, sw_if_index is the lender and unnumbered_sw_if_index the borrower.
//
// It first deletes the addresses of the borrower. VPP would forget these and keep their
// routes, and crash on the routes later.
func (h *handler) setUnnumbered(ctx context.Context, key string, v *interfaces.Interface_Unnumbered, on bool) error {
	borrower, ok := h.index.Get(borrowerOf(key))
	if !ok {
		return kinds.NotThere(borrowerOf(key))
	}
	lender, ok := h.index.Get(v.GetInterfaceWithIp())
	if !ok && on {
		return kinds.NotThere(v.GetInterfaceWithIp())
	}
	if !ok {
		lender = borrower // VPP requires an existing interface, and does not check which one
	}
	if on {
		if _, err := h.API.First(&ip.IPUnnumberedDump{}); err != nil {
			return err // nobody could tell borrowed addresses from others
		}
		if err := h.clearAddresses(ctx, borrower); err != nil {
			return err
		}
	}
	err := h.API.Call(ctx, &vppif.SwInterfaceSetUnnumbered{
		SwIfIndex: lender.SwIfIndex(), UnnumberedSwIfIndex: borrower.SwIfIndex(), IsAdd: on,
	}, &vppif.SwInterfaceSetUnnumberedReply{})
	if err == nil && !on {
		h.unborrow(borrowerOf(key))
	}
	return err
}

// clearAddresses deletes all addresses of an interface, unless they are borrowed.
func (h *handler) clearAddresses(ctx context.Context, meta Meta) error {
	borrowed, err := conn.Dump[ip.IPUnnumberedDetails](ctx, h.API, &ip.IPUnnumberedDump{SwIfIndex: meta.SwIfIndex()})
	if err != nil || len(borrowed) > 0 {
		return err
	}
	return h.API.Call(ctx, &vppif.SwInterfaceAddDelAddress{SwIfIndex: meta.SwIfIndex(), DelAll: true}, &vppif.SwInterfaceAddDelAddressReply{})
}

// unnumberedClaims refuse chains: many interfaces may borrow from one interface, which
// must not borrow itself.
func unnumberedClaims(key string, v *interfaces.Interface_Unnumbered) []scheduler.Claim {
	const field, want = "interface_with_ip", "an interface that has an address of its own"
	lender := v.GetInterfaceWithIp()
	return []scheduler.Claim{
		{Resource: "vpp-borrowing/" + borrowerOf(key), Field: field, Value: lender, Want: want},
		{Resource: "vpp-borrowing/" + lender, Field: field, Value: lender, Want: want, Yields: true},
	}
}

// unborrow notes that an interface no longer borrows an address.
func (h *handler) unborrow(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m, known := h.memberships[name]; known {
		m.borrows = false
		h.memberships[name] = m
	}
}

package nat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A takenError says in words what is in the way in VPP, which says only that something exists. Among declared
// values a claim says so before VPP is asked; this is about items of others, and about an interface and an address
// that turn out to be the same.
type takenError struct {
	text string
	err  error // VPP's
}

// Error implements error.
func (e *takenError) Error() string { return e.text }

// Unwrap returns the error of VPP.
func (e *takenError) Unwrap() error { return e.err }

// A seen mapping is one that VPP has, whoever has made it.
type seen struct {
	mapping
	label string // as Tags tells it; empty: no tag
}

// String describes a mapping to people.
func (s seen) String() string {
	text := "a mapping of " + s.place.String()
	if s.identity {
		text = "an identity mapping of " + s.place.String()
	}
	if s.label == "" {
		return text + " without a tag"
	}
	return fmt.Sprintf("%s with the tag %q", text, s.label)
}

// takenBy returns why VPP has refused mappings of a value with err: it names a mapping that has the external side, or in the
// endpoint-independent NAT44 the local side. It returns err if there is none any more.
func (h *handler) takenBy(ctx context.Context, p plugin, label string, wanted []mapping, err error) error {
	all, readErr := h.seen(ctx, p)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	for _, w := range wanted {
		addresses, readErr := h.addressesOf(ctx, w)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if slices.ContainsFunc(all, func(s seen) bool { return s.label == label && s.mapping == w }) {
			continue // it was not refused
		}
		for _, s := range all {
			switch {
			case s.isAt(w.place, addresses):
				return &takenError{fmt.Sprintf("%s is in the way of %s; expected an external address, port and protocol that no other mapping has", s, w.place), err}
			case !p.endpointDependent() && !w.identity && s.localSide() == w.localSide():
				return &takenError{fmt.Sprintf("%s has the local side of %s; the endpoint-independent NAT44 has each of them once", s, w.place), err}
			}
		}
	}
	return err
}

// seen returns all mappings of a plugin.
func (h *handler) seen(ctx context.Context, p plugin) (out []seen, err error) {
	r := &reader{h: h, ctx: ctx, names: h.Interfaces.Names()}
	r.each = func(tag string, m mapping, at interface_types.InterfaceIndex) {
		if at != noInterface {
			m.link = r.names[uint32(at)]
		}
		label, _, _, _ := parseTag(tag)
		out = append(out, seen{m, label})
	}
	err = p.readMappings(r)
	return out, err
}

// addressesOf returns the addresses of the interface of a mapping, any of which may be its external side; nil without one.
func (h *handler) addressesOf(ctx context.Context, m mapping) (out []netip.Addr, err error) {
	if m.link == "" {
		return nil, nil
	}
	at, err := h.interfaceNamed(m.link)
	if err != nil {
		return nil, err
	}
	all, err := conn.Dump[ip.IPAddressDetails](ctx, h.API, &ip.IPAddressDump{SwIfIndex: at})
	for _, d := range all {
		out = append(out, vppwire.PrefixOf(d.Prefix).Addr())
	}
	return out, err
}

// isAt reports whether a mapping has an external side, which is that of an interface with addresses or by address.
func (s seen) isAt(at place, addresses []netip.Addr) bool {
	if s.port != at.port || s.protocol != at.protocol {
		return false
	}
	return at.link != "" && (s.link == at.link || slices.Contains(addresses, s.addr)) || at.link == "" && s.addr == at.addr
}

// localSide returns what VPP compares of the local side, in the place of an identity mapping its own.
func (m mapping) localSide() (out struct {
	local

	protocol uint8
},
) {
	out.local, out.protocol = m.local, m.protocol
	if m.identity {
		out.local = local{addr: m.addr, port: m.port, vrf: m.vrf}
	}
	return out
}

// sidesTaken returns err, or in words that an interface is translated in the other of two ways, which VPP does not have together.
func sidesTaken(name string, output bool, err error) error {
	if !errors.Is(err, api.VALUE_EXIST) {
		return err
	}
	if output {
		return &takenError{"the interface " + name + " has a side already, which somebody else has given to it; expected one without a side: VPP translates on output or by sides", err}
	}
	return &takenError{"the interface " + name + " is translated on output already, as somebody else has set; expected one that is not: VPP translates on output or by sides", err}
}

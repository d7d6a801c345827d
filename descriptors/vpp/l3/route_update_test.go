package l3

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// TestUpdateOfRoute changes paths of a prefix in place, in each situation in which the prefix
// may be then.
func TestUpdateOfRoute(t *testing.T) {
	for name, story := range map[string]func(b *routeBench){
		"the other paths stay":                       (*routeBench).othersStay,
		"several paths change at the same time":      (*routeBench).severalChange,
		"a path changes while others come":           (*routeBench).othersCome,
		"a path without an interface is removed":     (*routeBench).staleGoes,
		"a path that somebody has deleted is added":  (*routeBench).deletedComes,
		"a prefix of an address hides the new path":  (*routeBench).hiddenChanges,
		"a path by the same address in other tables": (*routeBench).tablesDiffer,
	} {
		for _, release := range simulated.Releases() {
			t.Run(name+" on "+release, func(t *testing.T) {
				h, vpp := onVPP(t, release)
				story(&routeBench{T: t, h: h, vpp: vpp})
			})
		}
	}
}

// A routeBench has a VPP with two interfaces, if1 and if2.
type routeBench struct {
	*testing.T
	h   handler
	vpp *simulated.VPP
}

// route is a path of 10.9.0.0/16.
func (b *routeBench) route(more string) *l3.Route {
	b.Helper()
	return testkit.Parse[*l3.Route](b.T, `dst_network: "10.9.0.0/16" `+more)
}

func (b *routeBench) create(all ...*l3.Route) {
	b.Helper()
	for _, v := range all {
		if _, err := b.h.createRoute(b.Context(), "", v); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *routeBench) update(v *l3.Route) {
	b.Helper()
	if _, err := b.h.updateRoute(b.Context(), "", nil, v, struct{}{}); err != nil {
		b.Error(err)
	}
}

// has compares the paths that VPP forwards a prefix by: "INTERFACE NEXT-HOP WEIGHT PREFERENCE".
func (b *routeBench) has(prefix string, expected ...string) {
	b.Helper()
	var reply ip.IPRouteLookupV2Reply
	err := b.h.API.Call(b.Context(), &ip.IPRouteLookupV2{Exact: 1, Prefix: vppwire.Prefix(netip.MustParsePrefix(prefix))}, &reply)
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	for _, p := range reply.Route.Paths {
		out := "-"
		for name, meta := range b.h.Interfaces.All() {
			if meta.Index == p.SwIfIndex {
				out = name
			}
		}
		got = append(got, fmt.Sprintf("%s %v %d %d", out, vppwire.AddrIn(p.Nh.Address, p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6), p.Weight, p.Preference))
	}
	slices.Sort(got)
	if !slices.Equal(got, expected) {
		b.Errorf("%s has the paths\n%s\nexpected\n%s", prefix, strings.Join(got, "\n"), strings.Join(expected, "\n"))
	}
}

func (b *routeBench) othersStay() {
	b.create(
		b.route(`outgoing_interface: "if1" next_hop_addr: "10.1.0.2"`),
		b.route(`outgoing_interface: "if1" next_hop_addr: "fd01::2" weight: 2`),
		b.route(`outgoing_interface: "if2" next_hop_addr: "10.1.0.2" weight: 3`),
		b.route(`outgoing_interface: "if2" weight: 4`),
	)
	b.update(b.route(`outgoing_interface: "if1" next_hop_addr: "10.1.0.2" weight: 9`))
	b.update(b.route(`outgoing_interface: "if1" next_hop_addr: "fd01::2" weight: 8`))
	b.update(b.route(`outgoing_interface: "if2" weight: 7`))
	b.has("10.9.0.0/16", "if1 10.1.0.2 9 0", "if1 fd01::2 8 0", "if2 0.0.0.0 7 0", "if2 10.1.0.2 3 0")
	b.update(b.route(`outgoing_interface: "if1" next_hop_addr: "10.1.0.2" preference: 6`))
	b.has("10.9.0.0/16", "if1 10.1.0.2 1 6", "if1 fd01::2 8 0", "if2 0.0.0.0 7 0", "if2 10.1.0.2 3 0")
}

func (b *routeBench) severalChange() {
	var all sync.WaitGroup
	var expected []string
	for n := range 8 {
		path := fmt.Sprintf(`outgoing_interface: "if1" next_hop_addr: "10.1.0.%d" `, n)
		b.create(b.route(path))
		all.Go(func() { b.update(b.route(path + `weight: 5`)) })
		expected = append(expected, fmt.Sprintf("if1 10.1.0.%d 5 0", n))
	}
	all.Wait()
	b.has("10.9.0.0/16", expected...)
}

func (b *routeBench) othersCome() {
	b.create(b.route(`outgoing_interface: "if2" next_hop_addr: "10.2.0.1"`))
	var all sync.WaitGroup
	var expected []string
	for n := range 8 {
		all.Go(func() { b.create(b.route(fmt.Sprintf(`outgoing_interface: "if1" next_hop_addr: "10.1.0.%d"`, n))) })
		all.Go(func() { b.update(b.route(`outgoing_interface: "if2" next_hop_addr: "10.2.0.1" weight: 3`)) })
		expected = append(expected, fmt.Sprintf("if1 10.1.0.%d 1 0", n))
	}
	all.Wait()
	b.has("10.9.0.0/16", append(expected, "if2 10.2.0.1 3 0")...)
}

func (b *routeBench) staleGoes() {
	b.create(b.route(`outgoing_interface: "if1" next_hop_addr: "10.1.0.2"`), b.route(`outgoing_interface: "if2" next_hop_addr: "10.2.0.2"`))
	meta, err := b.h.interfaceNamed("if2")
	if err != nil {
		b.Fatal(err)
	}
	b.vpp.Ask(b.vpp.Dial(), &vppif.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(meta.Index)}, &vppif.DeleteLoopbackReply{})
	b.update(b.route(`outgoing_interface: "if1" next_hop_addr: "10.1.0.2" weight: 5`))
	b.has("10.9.0.0/16", "if1 10.1.0.2 5 0")
}

func (b *routeBench) deletedComes() {
	b.update(b.route(`outgoing_interface: "if1" next_hop_addr: "10.1.0.2" weight: 5`))
	b.has("10.9.0.0/16", "if1 10.1.0.2 5 0")
	b.update(b.route(`outgoing_interface: "if2" next_hop_addr: "10.1.0.2" weight: 6`))
	b.has("10.9.0.0/16", "if1 10.1.0.2 5 0", "if2 10.1.0.2 6 0")
}

func (b *routeBench) hiddenChanges() {
	b.create(b.route(`outgoing_interface: "if2" next_hop_addr: "10.2.0.2"`), b.route(`outgoing_interface: "if2" next_hop_addr: "10.2.0.3"`))
	meta, err := b.h.interfaceNamed("if1")
	if err != nil {
		b.Fatal(err)
	}
	address := func(add bool) {
		b.vpp.Ask(b.vpp.Dial(), &vppif.SwInterfaceAddDelAddress{
			SwIfIndex: interface_types.InterfaceIndex(meta.Index), IsAdd: add, Prefix: vppwire.AddressWithPrefix(netip.MustParsePrefix("10.9.0.1/16")),
		}, &vppif.SwInterfaceAddDelAddressReply{})
	}
	address(true)
	b.has("10.9.0.0/16", "if1 0.0.0.0 1 0")
	b.update(b.route(`outgoing_interface: "if2" next_hop_addr: "10.2.0.2" weight: 5`))
	b.has("10.9.0.0/16", "if1 0.0.0.0 1 0")
	address(false)
	b.has("10.9.0.0/16", "if2 10.2.0.2 5 0", "if2 10.2.0.3 1 0")
}

func (b *routeBench) tablesDiffer() {
	b.create(
		b.route(`next_hop_addr: "10.1.0.4"`),
		b.route(`next_hop_addr: "10.1.0.4" type: INTER_VRF via_vrf_id: 5 weight: 2`),
	)
	b.update(b.route(`next_hop_addr: "10.1.0.4" type: INTER_VRF via_vrf_id: 5 weight: 3`))
	b.has("10.9.0.0/16", "- 10.1.0.4 1 0", "- 10.1.0.4 3 0")
	b.update(b.route(`next_hop_addr: "10.1.0.4" weight: 4`))
	b.has("10.9.0.0/16", "- 10.1.0.4 3 0", "- 10.1.0.4 4 0")
}

// A route of a table that is not there cannot change.
func TestUpdateOfRouteFails(t *testing.T) {
	h, _ := onVPP(t, simulated.Releases()[0])
	v := testkit.Parse[*l3.Route](t, `vrf_id: 77 dst_network: "10.9.0.0/16" outgoing_interface: "if1"`)
	if _, err := h.updateRoute(t.Context(), "", nil, v, struct{}{}); !errors.Is(err, api.NO_SUCH_FIB) {
		t.Errorf("error %v; expected %v", err, api.NO_SUCH_FIB)
	}
	v = testkit.Parse[*l3.Route](t, `dst_network: "10.9.0.0/16" outgoing_interface: "if9"`)
	if _, err := h.updateRoute(t.Context(), "", nil, v, struct{}{}); !errors.Is(err, ErrNotThere) {
		t.Errorf("error %v; expected %v", err, ErrNotThere)
	}
}

// Package existing is test code: it is the iface.Index of descriptors that refer to interfaces,
// and runs a conformance suite on each release of VPP.
package existing

import (
	"net/netip"
	"slices"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// Interfaces are existing interfaces by name. They implement iface.Index; none was deleted.
type Interfaces map[string]iface.Meta

// Loopbacks creates loopbacks with these names in vpp.
func Loopbacks(vpp *simulated.VPP, c *conn.Conn, names ...string) Interfaces {
	vpp.Helper()
	for _, name := range names {
		vpp.Loopback(c, name)
	}
	all, err := conn.Dump[vppif.SwInterfaceDetails](vpp.Context(), c, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
	if err != nil {
		vpp.Fatal(err)
	}
	out := Interfaces{}
	for _, d := range all {
		if slices.Contains(names, d.Tag) {
			out[d.Tag] = ifindex.MetaOf(d)
		}
	}
	return out
}

// Get implements iface.Index.
func (i Interfaces) Get(name string) (iface.Meta, bool) { m, ok := i[name]; return m, ok }

// All implements iface.Index.
func (i Interfaces) All() map[string]iface.Meta { return i }

// Last implements iface.Index.
func (i Interfaces) Last(string) (uint32, bool) { return 0, false }

// Names implements iface.Index.
func (i Interfaces) Names() map[uint32]string { return iface.NamesByIndex(i) }

// Leftovers implements iface.Index. What is noted is dropped.
func (i Interfaces) Leftovers() *leftovers.Registry { return &leftovers.Registry{} }

// Connected implements iface.Index. They have no addresses.
func (i Interfaces) Connected(netip.Prefix) bool { return false }

// Conforms runs a suite on each release. descriptor makes the descriptor on a new VPP.
func Conforms[V proto.Message, M any](
	t *testing.T, descriptor func(t *testing.T, release string) scheduler.Descriptor[V, M], s conformance.Suite[V, M],
) {
	t.Helper()
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			s := s
			s.New = func(t *testing.T) scheduler.Descriptor[V, M] { return descriptor(t, release) }
			conformance.Run(t, s)
		})
	}
}

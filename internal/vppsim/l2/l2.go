// Package l2 simulates VPP's layer 2: bridge domains with their members, L2 FIBs and ARP
// termination, BVIs, cross-connects, and the rewriting of VLAN tags.
//
// Much of this state outlives its owner in the real VPP, and so it does here:
//
//	L2 FIB entry      stays when its interface leaves the bridge domain or is deleted
//	L2 FIB            stays when its bridge domain is deleted; dumps show ~0 as its ID, and the next domain gets it
//	cross-connect     stays, with the dead index, when the transmitting interface is deleted
//	tag rewrite       stays when its interface is deleted, unless the interface was cross-connected
//	member            ends with its interface
//
// Features of other plugins are the opposite: an interface loses them when it leaves layer 2,
// and their plugins do not notice.
package l2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// L2 is the plugin's state. An interface is in a bridge domain, or cross-connected, or neither.
type L2 struct {
	vpp          *core.VPP
	byID         map[uint32]*domain
	fibs         []*fib
	crossConnect map[uint32]uint32 // transmitting by receiving interface
	rewrites     map[uint32]rewrite
	chosen       uint32 // number of IDs that VPP has chosen
	features     map[feature]bool
	outputs      map[uint32]bool // by index; see Output
}

// A domain is a bridge domain.
type domain struct {
	id      uint32
	tag     string
	flags   l2.BdFlags
	macAge  uint8
	members []member // in the order of joining
	arps    []l2.BdIPMac
	fib     *fib
}

// A member is an interface in a bridge domain.
type member struct {
	index uint32
	port  l2.L2PortType
	shg   uint8 // split-horizon group
}

// A fib is the L2 FIB of a bridge domain.
type fib struct {
	owner   *domain // nil: the bridge domain was deleted
	entries map[ethernet_types.MacAddress]l2.L2FibTableDetails
}

type index = interface_types.InterfaceIndex

// New adds the plugin. Bridge domain 0 exists from the start; no dump shows it, and no
// message changes it.
func New(vpp *core.VPP) *L2 {
	p := &L2{vpp: vpp, byID: map[uint32]*domain{}, crossConnect: map[uint32]uint32{}, rewrites: map[uint32]rewrite{}, features: map[feature]bool{}, outputs: map[uint32]bool{}}
	p.add(0, l2.BRIDGE_API_FLAG_NONE)
	vpp.Register(core.Plugin{
		Messages: slices.Concat(p.domainMessages(), p.memberMessages(), p.fibMessages(), p.arpMessages(), p.bviMessages(), p.rewriteMessages()),
		Pages:    map[string]func() string{"show bridge-domain": p.show, "show l2fib": p.showFIB, "show l2 outputs": p.showOutputs},
		Commands: map[string]func([]string) (string, core.Errno){"show interface features": p.showFeatures},
		Removing: p.removing,
		Details: func(i *core.Interface, d *vppif.SwInterfaceDetails) {
			r := p.rewrites[i.Index]
			d.VtrOp, d.VtrPushDot1q, d.VtrTag1, d.VtrTag2 = r.op, r.push, r.tag1, r.tag2
		},
	})
	return p
}

// removing takes a deleted interface out of layer 2. With the receiving interface of a
// cross-connect, both ends return to layer 3.
func (p *L2) removing(i *core.Interface) {
	if tx, connected := p.crossConnect[i.Index]; connected {
		p.ToL3(tx)
		p.ToL3(i.Index)
	}
	p.leave(i.Index)
	delete(p.outputs, i.Index)
}

// Detach ends the bridging and the cross-connect of an interface. Its tag rewrite stays.
func (p *L2) Detach(i *core.Interface) {
	p.leave(i.Index)
	delete(p.crossConnect, i.Index)
}

// CrossConnect sends what an interface receives to another one.
func (p *L2) CrossConnect(from, to uint32) {
	p.leave(from)
	p.crossConnect[from] = to
}

// Output has layer 2 send packets out of an interface that is in layer 3. It ends when the
// interface leaves layer 2.
func (p *L2) Output(index uint32) { p.outputs[index] = true }

// showOutputs lists the interfaces of Output.
func (p *L2) showOutputs() string {
	var b strings.Builder
	for _, index := range slices.Sorted(maps.Keys(p.outputs)) {
		fmt.Fprintln(&b, p.vpp.NameOf(index))
	}
	return b.String()
}

// ToL3 removes all layer 2 state of an interface.
func (p *L2) ToL3(index uint32) {
	p.leave(index)
	delete(p.crossConnect, index)
	delete(p.rewrites, index)
	delete(p.outputs, index)
	maps.DeleteFunc(p.features, func(f feature, _ bool) bool { return f.index == index && !f.early })
}

// leave takes an interface out of its bridge domain. A BVI's own L2 FIB entry goes; all
// other entries stay.
func (p *L2) leave(index uint32) {
	for _, b := range p.byID {
		at := slices.IndexFunc(b.members, func(m member) bool { return m.index == index })
		if at < 0 {
			continue
		}
		if b.members[at].port == l2.L2_API_PORT_TYPE_BVI {
			maps.DeleteFunc(b.fib.entries, func(_ ethernet_types.MacAddress, e l2.L2FibTableDetails) bool {
				return e.BviMac && uint32(e.SwIfIndex) == index
			})
		}
		b.members = slices.Delete(b.members, at, at+1)
	}
}

// at returns a bridge domain that can be changed.
func (p *L2) at(id uint32) (*domain, core.Errno) {
	b := p.byID[id]
	switch {
	case id == 0:
		return nil, api.BD_NOT_MODIFIABLE
	case b == nil:
		return nil, api.NO_SUCH_ENTRY
	}
	return b, core.OK
}

// domains returns the bridge domains that dumps show, by ID.
func (p *L2) domains() []*domain {
	out := slices.SortedFunc(maps.Values(p.byID), func(a, b *domain) int { return cmp.Compare(a.id, b.id) })
	return slices.DeleteFunc(out, func(b *domain) bool { return b.id == 0 })
}

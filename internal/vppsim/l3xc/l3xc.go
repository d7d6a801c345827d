// Package l3xc simulates VPP's plugin for layer 3 cross-connects: all packets of one IP
// version that an interface receives take fixed paths. A cross-connect stays when its
// interface is deleted, and the next interface of that index inherits it.
package l3xc

import (
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l3xc"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A key identifies a cross-connect.
type key struct {
	index uint32
	ipv6  bool
}

// A connect is a cross-connect.
type connect struct {
	listed    l3xc.L3xc           // with the paths of the last update
	forwardBy []fib_types.FibPath // the paths that it was made with
}

// A plugin has the cross-connects of one VPP by interface and IP version.
type plugin struct {
	vpp  *core.VPP
	byID map[key]connect
}

type index = interface_types.InterfaceIndex

// New adds the plugin.
func New(vpp *core.VPP) {
	p := &plugin{vpp, map[key]connect{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.On(vpp, func(q *l3xc.L3xcUpdate) index { return q.L3xc.SwIfIndex }, p.update),
			core.On(vpp, func(q *l3xc.L3xcDel) index { return q.SwIfIndex }, p.delete),
			core.Dump(p.dump),
		},
		Pages: map[string]func() string{"show l3xc": p.show},
	})
}

// update makes a cross-connect, or replaces all paths of an existing one: VPP then lists the new
// paths, and goes on to forward by those that it was made with (VPP l3xc.c, l3xc_update). It needs
// a path, and the interfaces of all paths must exist. A weight of 0 becomes 1.
func (p *plugin) update(i *core.Interface, q *l3xc.L3xcUpdate, _ *l3xc.L3xcUpdateReply) core.Errno {
	if len(q.L3xc.Paths) == 0 {
		return api.INVALID_VALUE
	}
	unknown := func(path fib_types.FibPath) bool {
		return path.SwIfIndex != core.None && p.vpp.Interface(path.SwIfIndex) == nil
	}
	if slices.ContainsFunc(q.L3xc.Paths, unknown) {
		return api.NO_MATCHING_INTERFACE
	}
	for n := range q.L3xc.Paths {
		q.L3xc.Paths[n].Weight = max(q.L3xc.Paths[n].Weight, 1)
	}
	key := key{i.Index, q.L3xc.IsIP6}
	one, has := p.byID[key]
	one.listed = q.L3xc
	if !has {
		one.forwardBy = q.L3xc.Paths
	}
	p.byID[key] = one
	return core.OK
}

func (p *plugin) delete(i *core.Interface, q *l3xc.L3xcDel, _ *l3xc.L3xcDelReply) core.Errno {
	key := key{i.Index, q.IsIP6}
	if _, has := p.byID[key]; !has {
		return api.INVALID_VALUE
	}
	delete(p.byID, key)
	return core.OK
}

// dump lists the cross-connects of one interface, or of all for ~0. VPP does not fill in
// the IP version, so a client has to derive it from the paths.
func (p *plugin) dump(q *l3xc.L3xcDump, yield func(l3xc.L3xcDetails)) {
	for key, one := range p.byID {
		x := one.listed
		if uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == key.index {
			x.IsIP6 = false
			yield(l3xc.L3xcDetails{L3xc: x})
		}
	}
}

// show prints a line for each cross-connect, with its number of paths, and then as VPP does those
// by which it forwards.
func (p *plugin) show() string {
	var lines []string
	for key, one := range p.byID {
		var b strings.Builder
		fmt.Fprintf(&b, "%s by %d paths\n", p.vpp.NameOf(key.index), len(one.listed.Paths))
		for _, path := range one.forwardBy {
			fmt.Fprintf(&b, "  [@0]: via %s %s\n", vppwire.AddrIn(path.Nh.Address, key.ipv6), p.vpp.NameOf(path.SwIfIndex))
		}
		lines = append(lines, b.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Package span simulates port mirroring. VPP does not check that the interfaces exist, and
// keeps the mirroring when they are deleted (VPP span.c, span_add_delete_entry).
//
// In layer 2, an interface mirrors while it has a feature. VPP adds the feature with the first
// mirror of a direction and removes it with the last one.
package span

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/span"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/l2"
)

// A key identifies a mirroring: the source, the destination, and whether it works in a
// bridge domain. An interface may have several destinations.
type key struct {
	from, to uint32
	l2       bool
}

// compare orders mirrors by source, then by destination.
func (a key) compare(b key) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

type plugin struct {
	vpp       *core.VPP
	switching *l2.L2
	states    map[key]span.SpanState
}

// New adds the plugin.
func New(vpp *core.VPP, switching *l2.L2) {
	p := &plugin{vpp, switching, map[key]span.SpanState{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(p.set), core.Dump(p.dump)},
		Pages:    map[string]func() string{"show interface span": p.show},
	})
}

// set mirrors received packets, transmitted packets, or both; the state "disabled" ends
// it. An index of ~0 is refused, except as the destination of a request to disable. So is
// an interface that mirrors to itself.
func (p *plugin) set(q *span.SwInterfaceSpanEnableDisable, _ *span.SwInterfaceSpanEnableDisableReply) core.Errno {
	key := key{uint32(q.SwIfIndexFrom), uint32(q.SwIfIndexTo), q.IsL2}
	disable := q.State == span.SPAN_STATE_API_DISABLED
	switch {
	case q.State > span.SPAN_STATE_API_RX_TX:
		return api.UNIMPLEMENTED
	case key.from == core.None || key.to == core.None && !disable || key.from == key.to:
		return api.INVALID_INTERFACE
	}
	before := p.mirrors(key.from)
	delete(p.states, key)
	if !disable {
		p.states[key] = q.State
	}
	after := p.mirrors(key.from)
	for direction, name := range features() {
		if n := after[direction]; n != before[direction] && (n == 0 || before[direction] == 0) {
			p.switching.SetFeature(key.from, name, n > 0)
		}
	}
	return core.OK
}

// features are the features of layer 2 by the direction that they mirror.
func features() map[span.SpanState]string {
	return map[span.SpanState]string{span.SPAN_STATE_API_RX: "span-l2-input", span.SPAN_STATE_API_TX: "span-l2-output"}
}

// mirrors returns the number of an interface's mirrors of bridged packets, by direction.
func (p *plugin) mirrors(from uint32) map[span.SpanState]int {
	out := map[span.SpanState]int{}
	for key, state := range p.states {
		for direction := range features() {
			if key.l2 && key.from == from && state&direction != 0 {
				out[direction]++
			}
		}
	}
	return out
}

// dump lists the mirroring in bridge domains, or all other mirroring.
func (p *plugin) dump(q *span.SwInterfaceSpanDump, yield func(span.SwInterfaceSpanDetails)) {
	for _, key := range p.sorted() {
		if key.l2 == q.IsL2 {
			yield(span.SwInterfaceSpanDetails{
				SwIfIndexFrom: interface_types.InterfaceIndex(key.from), SwIfIndexTo: interface_types.InterfaceIndex(key.to),
				State: p.states[key], IsL2: key.l2,
			})
		}
	}
}

func (p *plugin) sorted() []key { return slices.SortedFunc(maps.Keys(p.states), key.compare) }

func (p *plugin) show() string {
	var b strings.Builder
	for _, key := range p.sorted() {
		fmt.Fprintf(&b, "%s to %s %s l2 %t\n", p.vpp.NameOf(key.from), p.vpp.NameOf(key.to), p.states[key], key.l2)
	}
	return b.String()
}

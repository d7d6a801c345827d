package ipfix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/flowprobe"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

const (
	defaultActive  = 15  // seconds
	defaultPassive = 120 // seconds
)

// A probe is the recording on one interface.
type probe struct {
	which     flowprobe.FlowprobeWhich
	direction flowprobe.FlowprobeDirection
}

// A memory is what VPP records flows in. VPP makes it when the first interface is recorded, and
// never another one (src/plugins/flowprobe/flowprobe.c, flowprobe_create_state_tables).
type memory int

const (
	noMemory memory = iota
	tables          // made with an active timer
	packet          // made with the active timer 0: the packet that is exported alone
)

type probes struct {
	vpp             *core.VPP
	record          flowprobe.FlowprobeRecordFlags
	active, passive uint32           // seconds
	on              map[uint32]probe // by sw_if_index
	memory          memory
}

type index = interface_types.InterfaceIndex

// newProbe adds the recording of flows. Initially, VPP records nothing and has its default
// timers.
func newProbe(vpp *core.VPP) {
	p := &probes{vpp: vpp, active: defaultActive, passive: defaultPassive, on: map[uint32]probe{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(p.set),
			core.Call(p.get),
			core.On(vpp, func(q *flowprobe.FlowprobeTxInterfaceAddDel) index { return q.SwIfIndex }, p.setTX),
			core.On(vpp, func(q *flowprobe.FlowprobeInterfaceAddDel) index { return q.SwIfIndex }, p.setInterface),
			core.Dump(p.dump),
		},
		// These have VPP's own format, because the agent reads them: the first two on VPP 22.02 only.
		Pages: map[string]func() string{
			"show flowprobe params": p.showParams, "show flowprobe feature": p.showFeatures, "show flowprobe statistics": p.showStatistics,
		},
	})
}

// set changes the parameters, while no interface is recorded. VPP 22.02 gives another error.
func (p *probes) set(q *flowprobe.FlowprobeParams, _ *flowprobe.FlowprobeParamsReply) core.Errno {
	switch {
	case len(p.on) > 0 && p.vpp.Before("22.06"):
		return api.UNSPECIFIED
	case len(p.on) > 0:
		return api.UNSUPPORTED
	}
	p.record, p.active, p.passive = q.RecordFlags, q.ActiveTimer, q.PassiveTimer
	if p.active == core.None {
		p.active = defaultActive
	}
	if p.passive == core.None {
		p.passive = defaultPassive
	}
	return core.OK
}

// get returns the parameters. VPP 22.02 lacks this message and has only a page.
func (p *probes) get(_ *flowprobe.FlowprobeGetParams, r *flowprobe.FlowprobeGetParamsReply) core.Errno {
	r.RecordFlags, r.ActiveTimer, r.PassiveTimer = p.record, p.active, p.passive
	return core.OK
}

// setTX records the outgoing packets of an interface. VPP takes the flags of the request for
// the number of a variant, and does not check that a recording that ends had begun.
func (p *probes) setTX(i *core.Interface, q *flowprobe.FlowprobeTxInterfaceAddDel, _ *flowprobe.FlowprobeTxInterfaceAddDelReply) core.Errno {
	which := flowprobe.FlowprobeWhich(q.Which)
	was, has := p.on[i.Index]
	if p.record == 0 || has && (q.IsAdd || was.which != which) {
		return api.CANNOT_ENABLE_DISABLE_FEATURE
	}
	return p.change(i, probe{which, flowprobe.FLOWPROBE_DIRECTION_TX}, q.IsAdd)
}

// setInterface is the message since 22.06. The end of a recording must name its variant.
func (p *probes) setInterface(i *core.Interface, q *flowprobe.FlowprobeInterfaceAddDel, _ *flowprobe.FlowprobeInterfaceAddDelReply) core.Errno {
	was, has := p.on[i.Index]
	switch {
	case q.Which > flowprobe.FLOWPROBE_WHICH_L2 || q.Direction > flowprobe.FLOWPROBE_DIRECTION_BOTH:
		return api.INVALID_VALUE
	case p.record == 0:
		return api.CANNOT_ENABLE_DISABLE_FEATURE
	case has && (q.IsAdd || was.which != q.Which):
		return api.ENTRY_ALREADY_EXISTS
	case !has && !q.IsAdd:
		return api.NO_SUCH_ENTRY
	}
	return p.change(i, probe{q.Which, q.Direction}, q.IsAdd)
}

// change stores or removes the recording of an interface. The caller has checked the request. VPP
// dies at the first packet of an interface if it has the memory for the other kind of active timer
// (node.c, add_to_flow_record_state). Here no packet comes, so it dies at once.
func (p *probes) change(i *core.Interface, to probe, add bool) core.Errno {
	if !add {
		delete(p.on, i.Index)
		return core.OK
	}
	needed := packet
	if p.active != 0 {
		needed = tables
	}
	if p.memory == noMemory {
		p.memory = needed
	}
	if p.memory != needed {
		return core.Crash
	}
	p.on[i.Index] = to
	return core.OK
}

// dump lists the recording of one interface, or all for ~0. Deleted interfaces are among them,
// because VPP does not clean up.
func (p *probes) dump(q *flowprobe.FlowprobeInterfaceDump, yield func(flowprobe.FlowprobeInterfaceDetails)) {
	for _, i := range slices.Sorted(maps.Keys(p.on)) {
		if uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == i {
			yield(flowprobe.FlowprobeInterfaceDetails{SwIfIndex: index(i), Which: p.on[i].which, Direction: p.on[i].direction})
		}
	}
}

// showParams prints the parameters (src/plugins/flowprobe/flowprobe.c, format_flowprobe_params).
// Timers print as signed numbers of seconds, as in the real VPP.
func (p *probes) showParams() string {
	var b strings.Builder
	for i, name := range []string{"l2", "l3", "l4"} {
		if p.record&(1<<i) != 0 {
			b.WriteString(" " + name)
		}
	}
	fmt.Fprintf(&b, " active: %d passive: %d\n", int32(p.active), int32(p.passive))
	return b.String()
}

// showStatistics prints the use of the tables of each thread, if there are tables
// (flowprobe_show_stats_fn).
func (p *probes) showStatistics() string {
	var b strings.Builder
	b.WriteString("IPFIX table statistics\nFlow entry size: 120\nFlow pool size per thread: 262144\n")
	for thread := range p.vpp.Options.Workers + 1 {
		if p.memory == tables {
			fmt.Fprintf(&b, "Pool utilisation thread %d is 0%%\n", thread)
		}
	}
	return b.String()
}

// showFeatures prints the recorded interfaces (flowprobe_show_feature_command_fn). VPP 22.02
// has no directions.
func (p *probes) showFeatures() string {
	var b strings.Builder
	for _, i := range slices.Sorted(maps.Keys(p.on)) {
		fmt.Fprintf(&b, " %s %s", p.vpp.NameOf(i), [...]string{"ip4", "ip6", "l2"}[p.on[i].which])
		if !p.vpp.Before("22.06") {
			fmt.Fprintf(&b, " %s", [...]string{"rx", "tx", "rx tx"}[p.on[i].direction])
		}
		b.WriteString("\n")
	}
	return b.String()
}

package vppsim_test

import (
	"context"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/flowprobe"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipfix_export"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
)

func flowRows() []row {
	return []row{
		{"the exporter of flows", exporterRow},
		{"parameters of recording", paramsRow},
		{"recording on interfaces", recordingRow},
		{"recording with an active timer makes tables", func(v *vpp) { memoryRow(v, 10, true) }},
		{"recording without an active timer makes no tables", func(v *vpp) { memoryRow(v, 0, false) }},
		{"recording stays with the index of a deleted interface", stayingRecording},
		{"the older message of recording takes flags for a number", olderRecording},
	}
}

// exporter sends the request of an exporter that is valid apart from what change makes of it.
func (v *vpp) exporter(want api.VPPApiError, change func(q *ipfix_export.SetIpfixExporter)) {
	v.Helper()
	q := &ipfix_export.SetIpfixExporter{
		CollectorAddress: addr("10.7.0.1"), CollectorPort: 9, SrcAddress: addr("10.7.0.2"), PathMtu: 600, TemplateInterval: 7,
	}
	change(q)
	v.call("set_ipfix_exporter", want, q, &ipfix_export.SetIpfixExporterReply{})
}

// exports checks the exporter.
func (v *vpp) exports(collector string, port uint16, source string, table, mtu, interval uint32) {
	v.Helper()
	all := dump[ipfix_export.IpfixExporterDetails](v, &ipfix_export.IpfixExporterDump{})
	if len(all) != 1 {
		v.Fatalf("there are %d exporters; expected one", len(all))
	}
	d := all[0]
	if vppwire.Addr(d.CollectorAddress).String() != collector || d.CollectorPort != port || vppwire.Addr(d.SrcAddress).String() != source ||
		d.VrfID != table || d.PathMtu != mtu || d.TemplateInterval != interval {
		v.Errorf("the exporter is %+v; expected %s %d %s %d %d %d", d, collector, port, source, table, mtu, interval)
	}
}

func exporterRow(v *vpp) {
	v.Cleanup(func() {
		q := &ipfix_export.SetIpfixExporter{PathMtu: 512}
		_ = v.Call(context.WithoutCancel(v.Context()), q, &ipfix_export.SetIpfixExporterReply{}) // what a failed row leaves
	})
	if v.fresh {
		v.exports("0.0.0.0", 0, "0.0.0.0", ^uint32(0), 0, 0)
	}
	v.table(7, "")
	v.exporter(0, func(q *ipfix_export.SetIpfixExporter) { q.VrfID = 7 })
	v.exports("10.7.0.1", 9, "10.7.0.2", 7, 600, 7)
	v.exporter(0, func(q *ipfix_export.SetIpfixExporter) {
		q.CollectorPort, q.PathMtu, q.TemplateInterval = 65535, ^uint32(0), ^uint32(0)
	})
	v.exports("10.7.0.1", 4739, "10.7.0.2", 0, 512, 20)
	v.exporter(api.NO_SUCH_FIB, func(q *ipfix_export.SetIpfixExporter) { q.VrfID = 77 })
	v.exporter(api.INVALID_VALUE, func(q *ipfix_export.SetIpfixExporter) { q.SrcAddress = ip_types.Address{} })
	v.exporter(api.INVALID_VALUE, func(q *ipfix_export.SetIpfixExporter) { q.SrcAddress = addr("fd07::1") })
	v.exporter(api.INVALID_VALUE, func(q *ipfix_export.SetIpfixExporter) { q.PathMtu = 67 })
	v.exporter(api.INVALID_VALUE, func(q *ipfix_export.SetIpfixExporter) { q.PathMtu = 1451 })
	v.exports("10.7.0.1", 4739, "10.7.0.2", 0, 512, 20)
	v.exporter(0, func(q *ipfix_export.SetIpfixExporter) { q.CollectorAddress = addr("700:1::") }) // read as 7.0.0.1
	v.exports("7.0.0.1", 9, "10.7.0.2", 0, 600, 7)
	v.exporter(0, func(q *ipfix_export.SetIpfixExporter) {
		q.CollectorAddress, q.SrcAddress = ip_types.Address{}, ip_types.Address{}
	})
	v.exports("0.0.0.0", 9, "0.0.0.0", 0, 600, 7)
}

// params sets the parameters of recording.
func (v *vpp) params(want api.VPPApiError, flags flowprobe.FlowprobeRecordFlags, active, passive uint32) {
	v.Helper()
	v.call("flowprobe_params", want, &flowprobe.FlowprobeParams{RecordFlags: flags, ActiveTimer: active, PassiveTimer: passive}, &flowprobe.FlowprobeParamsReply{})
}

// hasParams checks the parameters, as the message and as the command line tells them.
func (v *vpp) hasParams(flags flowprobe.FlowprobeRecordFlags, active, passive uint32, line string) {
	v.Helper()
	var r flowprobe.FlowprobeGetParamsReply
	v.call("flowprobe_get_params", 0, &flowprobe.FlowprobeGetParams{}, &r)
	if r.RecordFlags != flags || r.ActiveTimer != active || r.PassiveTimer != passive {
		v.Errorf("the parameters are %+v; expected %d %d %d", r, flags, active, passive)
	}
	v.says("show flowprobe params", line)
}

// says checks a page of VPP's command line.
func (v *vpp) says(command, want string) {
	v.Helper()
	var r vlib.CliInbandReply
	v.call(command, 0, &vlib.CliInband{Cmd: command}, &r)
	if got := strings.TrimRight(r.Reply, "\n"); got != want {
		v.Errorf("%s says %q; expected %q", command, got, want)
	}
}

// resetParams restores VPP's parameters after the row.
func (v *vpp) resetParams() {
	v.Cleanup(func() {
		q := &flowprobe.FlowprobeParams{ActiveTimer: ^uint32(0), PassiveTimer: ^uint32(0)}
		_ = v.Call(context.WithoutCancel(v.Context()), q, &flowprobe.FlowprobeParamsReply{}) // what a failed row leaves
	})
}

func paramsRow(v *vpp) {
	v.resetParams()
	const l2, l3, l4 = flowprobe.FLOWPROBE_RECORD_FLAG_L2, flowprobe.FLOWPROBE_RECORD_FLAG_L3, flowprobe.FLOWPROBE_RECORD_FLAG_L4
	v.hasParams(0, 15, 120, " active: 15 passive: 120")
	v.params(0, l2|l4, 20, 10) // the passive timer may be the shorter one
	v.hasParams(l2|l4, 20, 10, " l2 l4 active: 20 passive: 10")
	v.params(0, l3, 0, 1<<31)
	v.hasParams(l3, 0, 1<<31, " l3 active: 0 passive: -2147483648")
	i := v.loop()
	v.probe(i, true, flowprobe.FLOWPROBE_WHICH_IP4, flowprobe.FLOWPROBE_DIRECTION_TX, 0)
	v.params(api.UNSUPPORTED, l3, 30, 40)
	v.hasParams(l3, 0, 1<<31, " l3 active: 0 passive: -2147483648")
	v.probe(i, false, flowprobe.FLOWPROBE_WHICH_IP4, flowprobe.FLOWPROBE_DIRECTION_TX, 0)
	v.params(0, 0, ^uint32(0), ^uint32(0))
	v.hasParams(0, 15, 120, " active: 15 passive: 120")
}

func (v *vpp) probe(i index, add bool, which flowprobe.FlowprobeWhich, direction flowprobe.FlowprobeDirection, want api.VPPApiError) {
	v.Helper()
	q := &flowprobe.FlowprobeInterfaceAddDel{IsAdd: add, Which: which, Direction: direction, SwIfIndex: i}
	v.call("flowprobe_interface_add_del", want, q, &flowprobe.FlowprobeInterfaceAddDelReply{})
}

// probes checks the recordings of all interfaces.
func (v *vpp) probes(want ...flowprobe.FlowprobeInterfaceDetails) {
	v.Helper()
	if all := dump[flowprobe.FlowprobeInterfaceDetails](v, &flowprobe.FlowprobeInterfaceDump{SwIfIndex: none}); !slices.Equal(all, want) {
		v.Errorf("recorded are %+v; expected %+v", all, want)
	}
}

func recordingRow(v *vpp) {
	const ip4, ip6, l2 = flowprobe.FLOWPROBE_WHICH_IP4, flowprobe.FLOWPROBE_WHICH_IP6, flowprobe.FLOWPROBE_WHICH_L2
	const rx, tx, both = flowprobe.FLOWPROBE_DIRECTION_RX, flowprobe.FLOWPROBE_DIRECTION_TX, flowprobe.FLOWPROBE_DIRECTION_BOTH
	v.resetParams()
	i, j := v.loop(), v.loop()
	v.probe(i, true, ip4, tx, api.CANNOT_ENABLE_DISABLE_FEATURE)
	v.probe(i, false, ip4, tx, api.CANNOT_ENABLE_DISABLE_FEATURE)
	v.params(0, flowprobe.FLOWPROBE_RECORD_FLAG_L3, 10, 20)
	v.probe(unknown, true, ip4, tx, api.INVALID_SW_IF_INDEX)
	v.probe(i, true, 3, tx, api.INVALID_VALUE)
	v.probe(i, true, ip4, 3, api.INVALID_VALUE)
	v.probe(i, false, ip4, tx, api.NO_SUCH_ENTRY)
	v.probe(i, true, ip4, tx, 0)
	v.probe(i, true, ip4, tx, api.ENTRY_ALREADY_EXISTS)
	v.probe(i, true, ip4, rx, api.ENTRY_ALREADY_EXISTS)
	v.probe(i, true, l2, tx, api.ENTRY_ALREADY_EXISTS)
	v.probe(i, false, l2, tx, api.ENTRY_ALREADY_EXISTS)
	v.probe(j, true, ip6, both, 0)
	v.probes(flowprobe.FlowprobeInterfaceDetails{SwIfIndex: i, Which: ip4, Direction: tx}, flowprobe.FlowprobeInterfaceDetails{SwIfIndex: j, Which: ip6, Direction: both})
	v.says("show flowprobe feature", " "+v.details(i).InterfaceName+" ip4 tx\n "+v.details(j).InterfaceName+" ip6 rx tx")
	v.probe(i, false, ip4, tx, 0)
	v.probe(j, false, ip6, both, 0)
	v.probes()
}

// memoryRow records with an active timer, and checks whether VPP has tables of flows then. They stay.
// A packet that is recorded after another active timer, where one of both is 0, kills VPP.
func memoryRow(v *vpp, active uint32, tables bool) {
	testkit.Need(v, "a VPP of its own (VPP=binary instead of VPP_SOCKET)", v.fresh)
	const ip4, tx = flowprobe.FLOWPROBE_WHICH_IP4, flowprobe.FLOWPROBE_DIRECTION_TX
	has := func(when string, want bool) {
		v.Helper()
		if text := v.command("show flowprobe statistics"); strings.Contains(text, "Pool utilisation thread 0 is") != want {
			v.Errorf("%s: expected tables to be there: %t, in:\n%s", when, want, text)
		}
	}
	v.resetParams()
	i := v.loop()
	v.params(0, flowprobe.FLOWPROBE_RECORD_FLAG_L3, active, 20)
	has("before", false)
	v.probe(i, true, ip4, tx, 0)
	has("recording", tables)
	v.probe(i, false, ip4, tx, 0)
	v.params(0, 0, 30, 20)
	has("afterwards", tables)
}

// stayingRecording deletes a recorded interface. The parameters cannot change until another
// interface has its index, and its recording is ended.
func stayingRecording(v *vpp) {
	const l2, tx = flowprobe.FLOWPROBE_WHICH_L2, flowprobe.FLOWPROBE_DIRECTION_TX
	v.resetParams()
	i := v.loop()
	v.params(0, flowprobe.FLOWPROBE_RECORD_FLAG_L2, 10, 20)
	v.probe(i, true, l2, tx, 0)
	if err := v.delete(i); err != nil {
		v.Fatal(err)
	}
	v.probes(flowprobe.FlowprobeInterfaceDetails{SwIfIndex: i, Which: l2, Direction: tx})
	v.probe(i, false, l2, tx, api.INVALID_SW_IF_INDEX)
	v.params(api.UNSUPPORTED, flowprobe.FLOWPROBE_RECORD_FLAG_L3, 10, 20)
	j := v.loop()
	if i != j {
		v.Fatalf("the next interface has the index %d; expected %d", j, i)
	}
	v.probe(j, true, l2, tx, api.ENTRY_ALREADY_EXISTS)
	v.probe(j, false, l2, tx, 0)
	v.probes()
	v.params(0, flowprobe.FLOWPROBE_RECORD_FLAG_L3, 10, 20)
}

// olderRecording uses the only message of VPP 22.02. Its flag for IPv4 records IPv6.
func olderRecording(v *vpp) {
	v.resetParams()
	i := v.loop()
	set := func(add bool, which flowprobe.FlowprobeWhichFlags, want api.VPPApiError) {
		v.Helper()
		q := &flowprobe.FlowprobeTxInterfaceAddDel{IsAdd: add, Which: which, SwIfIndex: i}
		v.call("flowprobe_tx_interface_add_del", want, q, &flowprobe.FlowprobeTxInterfaceAddDelReply{})
	}
	set(true, 0, api.CANNOT_ENABLE_DISABLE_FEATURE)
	v.params(0, flowprobe.FLOWPROBE_RECORD_FLAG_L3, 10, 20)
	for number, which := range []flowprobe.FlowprobeWhich{flowprobe.FLOWPROBE_WHICH_IP4, flowprobe.FLOWPROBE_WHICH_IP6, flowprobe.FLOWPROBE_WHICH_L2} {
		set(true, flowprobe.FlowprobeWhichFlags(number), 0)
		set(true, flowprobe.FlowprobeWhichFlags(number), api.CANNOT_ENABLE_DISABLE_FEATURE)
		v.probes(flowprobe.FlowprobeInterfaceDetails{SwIfIndex: i, Which: which, Direction: flowprobe.FLOWPROBE_DIRECTION_TX})
		set(false, flowprobe.FlowprobeWhichFlags((number+1)%3), api.CANNOT_ENABLE_DISABLE_FEATURE)
		set(false, flowprobe.FlowprobeWhichFlags(number), 0)
		v.probes()
	}
}

// Package ipfix simulates VPP's export of flows: the exporter of VPP's core, and the plugin
// that records flows (flowprobe). It exports nothing.
//
// The exporter for an IPv4 collector exists always, and sends nothing while its collector
// is 0.0.0.0. Recording on an interface stays when that is deleted; the next interface
// with its index inherits the flag, but is not recorded.
package ipfix

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ipfix_export"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppwire"
)

const (
	defaultPort     = 4739
	defaultMTU      = 512 // bytes
	defaultInterval = 20  // seconds
	// VPP accepts only path MTUs in this range, in bytes.
	leastMTU = 68
	mostMTU  = 1450
	noPort   = ^uint16(0) // stands for the default
)

type exporter struct {
	tables *ip.IP
	// setting always has a value: before the first request, its collector is 0.0.0.0.
	setting ipfix_export.IpfixExporterDetails
}

// New adds the exporter and the recording of flows.
func New(vpp *core.VPP, tables *ip.IP) {
	e := &exporter{tables: tables, setting: ipfix_export.IpfixExporterDetails{VrfID: core.None}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(e.set), core.Dump(e.dump)},
		Pages:    map[string]func() string{"show ipfix exporter": e.show},
	})
	newProbe(vpp)
}

// set changes the exporter (src/vnet/ipfix-export/flow_api.c). VPP reads the collector's address
// as IPv4 always. A refused request changes nothing.
func (e *exporter) set(q *ipfix_export.SetIpfixExporter, _ *ipfix_export.SetIpfixExporterReply) core.Errno {
	collector, source := vppwire.AddrIn(q.CollectorAddress.Un, false), vppwire.Addr(q.SrcAddress)
	now := ipfix_export.IpfixExporterDetails{
		CollectorAddress: vppwire.Address(collector), CollectorPort: q.CollectorPort, SrcAddress: q.SrcAddress,
		VrfID: q.VrfID, PathMtu: q.PathMtu, TemplateInterval: q.TemplateInterval, UDPChecksum: q.UDPChecksum,
	}
	if now.CollectorPort == noPort {
		now.CollectorPort = defaultPort
	}
	if now.PathMtu == core.None {
		now.PathMtu = defaultMTU
	}
	if now.TemplateInterval == core.None {
		now.TemplateInterval = defaultInterval
	}
	switch {
	case q.VrfID != core.None && !e.tables.HasTable(false, q.VrfID):
		return api.NO_SUCH_FIB
	case collector != netip.IPv4Unspecified() && source.IsUnspecified() || !source.Is4() || now.PathMtu < leastMTU || now.PathMtu > mostMTU:
		return api.INVALID_VALUE
	}
	e.setting = now
	return core.OK
}

// dump yields the exporter. There always is one, also before the first request.
func (e *exporter) dump(_ *ipfix_export.IpfixExporterDump, yield func(ipfix_export.IpfixExporterDetails)) {
	yield(e.setting)
}

// show prints nothing while the exporter sends nothing: the other settings have no effect then.
func (e *exporter) show() string {
	s := e.setting
	if vppwire.Addr(s.CollectorAddress).IsUnspecified() {
		return ""
	}
	return fmt.Sprintf("collector %s port %d source %s table %d mtu %d interval %d\n",
		vppwire.Addr(s.CollectorAddress), s.CollectorPort, vppwire.Addr(s.SrcAddress), s.VrfID, s.PathMtu, s.TemplateInterval)
}

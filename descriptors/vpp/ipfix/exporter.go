package ipfix

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/ipfix_export"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipfix"
	"github.com/keyplane/keyplane/scheduler"
)

// VPP's defaults (src/vnet/ipfix-export/flow_api.c).
const (
	defaultPort     = 4739
	defaultMTU      = 512 // bytes; RFC 7011, section 10.3.3
	defaultInterval = 20  // seconds
	// VPP takes this number for its defaults.
	noNumber = 1<<32 - 1
)

// exporterDescriptor implements the exporter that recordings use. VPP has further ones, which
// nothing uses.
func (h *handler) exporterDescriptor() scheduler.Descriptor[*ipfix.IPFIX, struct{}] {
	return scheduler.Descriptor[*ipfix.IPFIX, struct{}]{
		Name:  Name,
		Model: models.For[*ipfix.IPFIX](),

		Normalize:  normalizeExporter,
		Validate:   validateExporter,
		Equivalent: func(_ string, old, new *ipfix.IPFIX) bool { return settingOf(old) == settingOf(new) },
		Dependencies: func(_ string, v *ipfix.IPFIX) []scheduler.Dependency {
			if v.GetVrfId() == 0 {
				return nil
			}
			return []scheduler.Dependency{{Label: "vrf-table-exists", Key: keys.VRFTable(v.GetVrfId(), false)}}
		},

		Create: func(ctx context.Context, _ string, v *ipfix.IPFIX) (struct{}, error) {
			return struct{}{}, h.setExporter(ctx, settingOf(v))
		},
		Update: func(ctx context.Context, _ string, _, v *ipfix.IPFIX, _ struct{}) (struct{}, error) {
			return struct{}{}, h.setExporter(ctx, settingOf(v))
		},
		Delete: func(ctx context.Context, _ string, _ *ipfix.IPFIX, _ struct{}) error {
			return h.setExporter(ctx, none())
		},
		Retrieve: h.retrieveExporter,
	}
}

// normalizeExporter removes prefix lengths from addresses.
func normalizeExporter(_ string, v *ipfix.IPFIX) (*ipfix.IPFIX, []string) {
	if !spelling.HasLength(v.GetSourceAddress()) && !spelling.HasLength(v.GetCollector().GetAddress()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	warnings := spelling.Host("source_address", &v.SourceAddress)
	if v.GetCollector() != nil {
		warnings = append(warnings, spelling.Host("collector.address", &v.Collector.Address)...)
	}
	return v, warnings
}

// validateExporter checks the addresses. IPv6 is refused, because VPP reads the
// collector's address as IPv4 always.
func validateExporter(_ string, v *ipfix.IPFIX) error {
	var f models.Faults
	address := func(field, text string) {
		if a, err := netip.ParseAddr(text); err != nil || !a.Is4() || a.IsUnspecified() {
			f.Add(field, text, `an IPv4 address, such as "10.0.0.1"`)
		}
	}
	address("collector.address", v.GetCollector().GetAddress())
	address("source_address", v.GetSourceAddress())
	return f.Err()
}

// A setting is the state of the exporter, with defaults filled in.
type setting struct {
	collector, source    netip.Addr
	port                 uint16
	table, mtu, interval uint32
}

// none is the setting that exports nothing.
func none() setting {
	zero := netip.IPv4Unspecified()
	return setting{collector: zero, source: zero, port: defaultPort, mtu: defaultMTU, interval: defaultInterval}
}

// settingOf returns the setting of a valid value.
func settingOf(v *ipfix.IPFIX) setting {
	collector, _ := netip.ParseAddr(v.GetCollector().GetAddress()) // validateExporter has refused others
	source, _ := netip.ParseAddr(v.GetSourceAddress())             // the same
	return setting{
		collector: collector, source: source, port: uint16(cmp.Or(v.GetCollector().GetPort(), defaultPort)), table: v.GetVrfId(),
		mtu: cmp.Or(v.GetPathMtu(), defaultMTU), interval: cmp.Or(v.GetTemplateInterval(), defaultInterval),
	}
}

func (h *handler) setExporter(ctx context.Context, s setting) error {
	return h.API.Call(ctx, &ipfix_export.SetIpfixExporter{
		CollectorAddress: vppwire.Address(s.collector), CollectorPort: s.port, SrcAddress: vppwire.Address(s.source),
		VrfID: s.table, PathMtu: s.mtu, TemplateInterval: s.interval,
	}, &ipfix_export.SetIpfixExporterReply{})
}

// retrieveExporter yields the exporter. One without a collector exports nothing: it belongs to nobody, and is not
// there for somebody who declares it.
func (h *handler) retrieveExporter(ctx context.Context, wanted []scheduler.Desired[*ipfix.IPFIX]) scheduler.Retrieved[*ipfix.IPFIX, struct{}] {
	type found = scheduler.Found[*ipfix.IPFIX, struct{}]
	return func(yield func(found, error) bool) {
		v, err := h.readExporter(ctx)
		switch idle := v.GetCollector().GetAddress() == netip.IPv4Unspecified().String(); {
		case err != nil:
			yield(found{}, err)
		case v == nil || idle && len(wanted) > 0:
		case idle:
			yield(found{Value: idleExporter(), Foreign: true}, nil)
		default:
			yield(found{Value: v, OwnerUnknown: len(wanted) == 0}, nil)
		}
	}
}

// idleExporter returns the exporter without a collector. Settings that an earlier one has left there have no effect.
func idleExporter() *ipfix.IPFIX {
	s := none()
	return &ipfix.IPFIX{
		Collector:     &ipfix.IPFIX_Collector{Address: s.collector.String(), Port: uint32(s.port)},
		SourceAddress: s.source.String(), PathMtu: s.mtu, TemplateInterval: s.interval,
	}
}

// readExporter returns the exporter. VPP always has exactly one here, if it can list it; nil: it cannot.
func (h *handler) readExporter(ctx context.Context) (*ipfix.IPFIX, error) {
	all, err := conn.Dump[ipfix_export.IpfixExporterDetails](ctx, h.API, &ipfix_export.IpfixExporterDump{})
	switch {
	case err != nil:
		return nil, err
	case !h.API.Has(&ipfix_export.IpfixExporterDump{}):
		return nil, nil
	case len(all) != 1:
		return nil, fmt.Errorf("ipfix_exporter_dump: %d exporters; expected one: %w", len(all), conn.ErrProtocol)
	}
	d := all[0]
	return &ipfix.IPFIX{
		Collector:     &ipfix.IPFIX_Collector{Address: vppwire.Addr(d.CollectorAddress).String(), Port: uint32(d.CollectorPort)},
		SourceAddress: vppwire.Addr(d.SrcAddress).String(), VrfId: d.VrfID, PathMtu: d.PathMtu, TemplateInterval: d.TemplateInterval,
	}, nil
}

package l3

import (
	"encoding/json"

	"go.fd.io/govpp/binapi/fib_types"
)

// routeDetails are what VPP tells of a path besides the value, for people. The names in JSON are those of
// vpp-agent 3.5. Most of it is about paths that a value cannot express.
type routeDetails struct {
	TableName         string
	OutgoingIfIdx     uint32
	IsIPv6            bool
	Afi               uint8
	IsLocal           bool
	IsUDPEncap        bool
	IsUnreach         bool
	IsProhibit        bool
	IsResolveHost     bool
	IsResolveAttached bool
	IsDvr             bool
	IsSourceLookup    bool
	NextHopID         uint32
	RpfID             uint32
	LabelStack        []labelDetails
}

// labelDetails is an MPLS label of a path.
type labelDetails struct {
	IsUniform bool
	Label     uint32
	TTL, Exp  uint8
}

// MarshalJSON writes the details of the path. A dump may have a million paths, so each is converted
// only when it is shown.
func (p *path) MarshalJSON() ([]byte, error) {
	is := func(form fib_types.FibPathType) bool { return p.form == uint8(form) }
	has := func(flag fib_types.FibPathFlags) bool { return p.flags&uint8(flag) != 0 }
	d := routeDetails{
		TableName: p.table.Name, OutgoingIfIdx: p.out, IsIPv6: p.ipv6, Afi: p.proto, NextHopID: p.object, RpfID: p.rpf,
		IsLocal: is(fib_types.FIB_API_PATH_TYPE_LOCAL), IsUDPEncap: is(fib_types.FIB_API_PATH_TYPE_UDP_ENCAP),
		IsUnreach: is(fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH), IsProhibit: is(fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT),
		IsDvr: is(fib_types.FIB_API_PATH_TYPE_DVR), IsSourceLookup: is(fib_types.FIB_API_PATH_TYPE_SOURCE_LOOKUP),
		IsResolveHost: has(fib_types.FIB_API_PATH_FLAG_RESOLVE_VIA_HOST), IsResolveAttached: has(fib_types.FIB_API_PATH_FLAG_RESOLVE_VIA_ATTACHED),
		LabelStack: []labelDetails{},
	}
	for _, l := range p.labels {
		d.LabelStack = append(d.LabelStack, labelDetails{l.IsUniform != 0, l.Label, l.TTL, l.Exp})
	}
	return json.Marshal(d)
}

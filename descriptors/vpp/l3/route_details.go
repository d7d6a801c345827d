package l3

import (
	"encoding/json"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
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

// A shownPath is what VPP tells of a path besides the value, as its message has it.
type shownPath struct {
	table       *ip.IPTable
	out         uint32
	form, flags uint8 // FibPathType and FibPathFlags
	proto       uint8 // FibPathNhProto
	object, rpf uint32
	labels      []fib_types.FibMplsLabel
}

// shownPathOf converts VPP's answer; out is the outgoing interface, or noInterface.
func shownPathOf(t *ip.IPTable, p *fib_types.FibPath, out uint32) *shownPath {
	s := &shownPath{table: t, out: out, form: uint8(p.Type), flags: uint8(p.Flags), proto: uint8(p.Proto), object: p.Nh.ObjID, rpf: p.RpfID}
	if n := int(p.NLabels); n > 0 && n <= len(p.LabelStack) {
		s.labels = slices.Clone(p.LabelStack[:n])
	}
	return s
}

// details returns what Found.Details shows of the path.
func (p *path) details() any {
	if p.shown == nil {
		return nil
	}
	return p.shown
}

// MarshalJSON writes the details of a path. A dump may have a million paths, so each is converted
// only when it is shown.
func (p *shownPath) MarshalJSON() ([]byte, error) {
	is := func(form fib_types.FibPathType) bool { return p.form == uint8(form) }
	has := func(flag fib_types.FibPathFlags) bool { return p.flags&uint8(flag) != 0 }
	d := routeDetails{
		TableName: p.table.Name, OutgoingIfIdx: p.out, IsIPv6: p.table.IsIP6, Afi: p.proto, NextHopID: p.object, RpfID: p.rpf,
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

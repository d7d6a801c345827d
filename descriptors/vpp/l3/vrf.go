package l3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	// maxLabelLength is the maximum length of a table's name in bytes (VPP ip.api, string
	// name[64]).
	maxLabelLength = 63
	// invalidTable is ~0, which VPP uses for "no table".
	invalidTable = ^uint32(0)
)

// validateVRF checks a VRF table.
func validateVRF(_ string, v *l3.VrfTable) error {
	var f faults
	f.table("id", v.GetId())
	if l3.VrfTable_Protocol_name[int32(v.GetProtocol())] == "" {
		f.Add("protocol", int32(v.GetProtocol()), "IPV4 or IPV6")
	}
	if len(v.GetLabel()) > maxLabelLength || strings.ContainsRune(v.GetLabel(), 0) {
		f.Add("label", v.GetLabel(), "at most %d bytes (it has %d), none of them zero", maxLabelLength, len(v.GetLabel()))
	}
	return f.Err()
}

// table checks the ID of a table.
func (f *faults) table(field string, id uint32) {
	if id == invalidTable {
		f.Add(field, id, "a number below 4294967295")
	}
}

// isIPv6 reports the IP version of the table.
func isIPv6(v *l3.VrfTable) bool { return v.GetProtocol() == l3.VrfTable_IPV6 }

// tableName returns the name of the table in VPP: the label, or VPP's default name.
func tableName(v *l3.VrfTable) string {
	if v.GetLabel() == "" && isIPv6(v) {
		return fmt.Sprintf("ipv6-VRF:%d", v.GetId())
	}
	return cmp.Or(v.GetLabel(), fmt.Sprintf("ipv4-VRF:%d", v.GetId()))
}

// equivalentVRF compares names and the settings of the flow hash.
func equivalentVRF(_ string, old, new *l3.VrfTable) bool {
	a, b := old.GetFlowHashSettings(), new.GetFlowHashSettings()
	return sameName(old, new) && (a == nil && b == nil || proto.Equal(a, b))
}

// sameName compares names. VPP never changes the name of table 0.
func sameName(old, new *l3.VrfTable) bool {
	return new.GetId() == 0 || tableName(old) == tableName(new)
}

// recreateVRF: VPP cannot rename a table.
func recreateVRF(_ string, old, new *l3.VrfTable, _ struct{}) bool { return !sameName(old, new) }

// wireTable returns the table in VPP's form.
func wireTable(v *l3.VrfTable) ip.IPTable {
	return ip.IPTable{TableID: v.GetId(), IsIP6: isIPv6(v), Name: tableName(v)}
}

// createVRF creates a table and sets its flow hash. VPP accepts a table that exists.
func (h handler) createVRF(ctx context.Context, _ string, v *l3.VrfTable) (struct{}, error) {
	if err := h.changeTable(ctx, v, true); err != nil {
		return struct{}{}, err
	}
	if v.GetFlowHashSettings() == nil && !h.hashes.mayDiffer(tableKey(v)) {
		return struct{}{}, nil
	}
	return struct{}{}, h.setFlowHash(ctx, v)
}

// updateVRF changes the flow hash, the only setting that can change.
func (h handler) updateVRF(ctx context.Context, _ string, _, new *l3.VrfTable, _ struct{}) (struct{}, error) {
	return struct{}{}, h.setFlowHash(ctx, new)
}

// deleteVRF flushes the table before it deletes it: VPP would keep its routes for the next
// table with this ID. Table 0 always exists, and only its flow hash is reset.
func (h handler) deleteVRF(ctx context.Context, _ string, v *l3.VrfTable, _ struct{}) error {
	if v.GetId() == 0 {
		return h.resetFlowHash(ctx, v)
	}
	err := h.API.Call(ctx, &ip.IPTableFlush{Table: wireTable(v)}, &ip.IPTableFlushReply{})
	if err == nil {
		err = h.changeTable(ctx, v, false)
	}
	if err != nil && !errors.Is(err, api.NO_SUCH_FIB) {
		return err
	}
	h.hashes.forget(tableKey(v))
	return nil
}

// changeTable creates or deletes a table with the newest message that this VPP supports.
func (h handler) changeTable(ctx context.Context, v *l3.VrfTable, add bool) error {
	request, err := h.API.First(
		&ip.IPTableAddDelV2{IsAdd: add, Table: wireTable(v), CreateMfib: true},
		&ip.IPTableAddDel{IsAdd: add, Table: wireTable(v)},
	)
	if err != nil {
		return err
	}
	if _, newer := request.(*ip.IPTableAddDelV2); newer {
		return h.API.Call(ctx, request, &ip.IPTableAddDelV2Reply{})
	}
	return h.API.Call(ctx, request, &ip.IPTableAddDelReply{})
}

// retrieveVRFs yields all tables. VPP records no owner, so undeclared ones are Unknown. Table 0
// belongs to VPP, but its flow hash may be one that this agent has set.
func (h handler) retrieveVRFs(ctx context.Context, wanted []scheduler.Desired[*l3.VrfTable]) scheduler.Retrieved[*l3.VrfTable, struct{}] {
	type found = scheduler.Found[*l3.VrfTable, struct{}]
	return func(yield func(found, error) bool) {
		tables, err := h.tables(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		declared := map[ip.IPTable]*l3.VrfTable{}
		for _, w := range wanted {
			declared[tableKey(w.Value)] = w.Value
		}
		for _, t := range tables {
			v := &l3.VrfTable{Id: t.TableID, Label: t.Name}
			if t.IsIP6 {
				v.Protocol = l3.VrfTable_IPV6
			}
			w := declared[tableKey(v)]
			v.FlowHashSettings = h.hashes.of(tableKey(v), w.GetFlowHashSettings())
			// It cannot be deleted, so it must not count as ours after a Delete.
			own := t.TableID == 0 && !h.hashes.mayDiffer(tableKey(v))
			if !yield(found{Value: v, Foreign: own && w == nil, OwnerUnknown: !own && w == nil}, nil) {
				return
			}
		}
	}
}

// tableKey returns the identity of a table: its ID and IP version.
func tableKey(v *l3.VrfTable) ip.IPTable { return ip.IPTable{TableID: v.GetId(), IsIP6: isIPv6(v)} }

// tables returns all tables of VPP, without those that have no number: VPP keeps its own routes there, for
// the steering of SRv6.
func (h handler) tables(ctx context.Context) ([]ip.IPTable, error) {
	details, err := conn.Dump[ip.IPTableDetails](ctx, h.API, &ip.IPTableDump{})
	out := make([]ip.IPTable, 0, len(details))
	for _, d := range details {
		if d.Table.TableID != invalidTable {
			out = append(out, d.Table)
		}
	}
	return out, err
}

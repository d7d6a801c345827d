package nat

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// A vrfRoute leads translations of packets from one VRF to another. Both are numbers of IPv4
// tables. VPP looks up a destination in each VRF to which a route of the source VRF leads.
type vrfRoute struct{ from, to uint32 }

// vrfDescriptor implements the tables of VRFs, with the routes that their values have.
func (h *handler) vrfDescriptor() scheduler.Descriptor[*nat.Nat44VrfTable, struct{}] {
	return scheduler.Descriptor[*nat.Nat44VrfTable, struct{}]{
		Name:  VRFName,
		Model: models.For[*nat.Nat44VrfTable](),

		Validate: validateVRF,
		Equivalent: func(_ string, old, new *nat.Nat44VrfTable) bool {
			return old.GetSrcVrfId() == new.GetSrcVrfId() && slices.Equal(destinations(old), destinations(new))
		},
		Dependencies: func(_ string, v *nat.Nat44VrfTable) []scheduler.Dependency {
			deps := append(vrfExists("vrf-table-exists", v.GetSrcVrfId()), enabledFor(true))
			for _, to := range lists.Firsts(v.GetDestVrfIds()) {
				deps = append(deps, vrfExists(fmt.Sprintf("vrf-table-%d-exists", to), to)...)
			}
			return deps
		},
		Claims: func(_ string, v *nat.Nat44VrfTable) (out []scheduler.Claim) {
			for i, to := range lists.Firsts(v.GetDestVrfIds()) {
				out = append(out, routeClaim(fmt.Sprintf("dest_vrf_ids[%d]", i), vrfRoute{v.GetSrcVrfId(), to}))
			}
			return out
		},

		Create: h.createVRF,
		Update: h.updateVRF,
		Delete: func(ctx context.Context, _ string, v *nat.Nat44VrfTable, _ struct{}) error {
			q := &nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: v.GetSrcVrfId()}
			return unlessGone(h.API.Call(ctx, q, &nat44_ed.Nat44EdAddDelVrfTableReply{}))
		},
		Retrieve:      h.retrieveVRFs,
		RetrieveAfter: []string{RouteName},
	}
}

// tableKey is the key of the table of a VRF.
func tableKey(from uint32) string {
	return "config/vpp/nat/v2/nat44-vrf/vrfid/" + strconv.FormatUint(uint64(from), 10)
}

// routeDescriptor implements the routes that are values of their own.
func (h *handler) routeDescriptor() scheduler.Descriptor[*nat.Nat44VrfRoute, struct{}] {
	return scheduler.Descriptor[*nat.Nat44VrfRoute, struct{}]{
		Name:  RouteName,
		Model: models.For[*nat.Nat44VrfRoute](),

		Dependencies: func(_ string, v *nat.Nat44VrfRoute) []scheduler.Dependency {
			table := scheduler.Dependency{Label: "nat44-vrf-table-exists", Key: tableKey(v.GetSrcVrfId())}
			return append(vrfExists("vrf-table-exists", v.GetDestVrfId()), table)
		},
		Claims: func(_ string, v *nat.Nat44VrfRoute) []scheduler.Claim {
			return []scheduler.Claim{routeClaim("dest_vrf_id", routeOf(v))}
		},

		Create: func(ctx context.Context, _ string, v *nat.Nat44VrfRoute) (struct{}, error) {
			h.routes.note(routeOf(v), true)
			return struct{}{}, h.setRoutes(ctx, v.GetSrcVrfId(), []uint32{v.GetDestVrfId()}, true)
		},
		Delete: func(ctx context.Context, _ string, v *nat.Nat44VrfRoute, _ struct{}) error {
			err := h.setRoutes(ctx, v.GetSrcVrfId(), []uint32{v.GetDestVrfId()}, false)
			if err == nil {
				h.routes.note(routeOf(v), false)
			}
			return err
		},
		Retrieve: h.retrieveRoutes,
	}
}

func routeOf(v *nat.Nat44VrfRoute) vrfRoute { return vrfRoute{v.GetSrcVrfId(), v.GetDestVrfId()} }

// routeClaim claims a route: VPP does not tell whether a table or a value of its own has it.
func routeClaim(field string, r vrfRoute) scheduler.Claim {
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-nat44-vrf-route/%d/%d", r.from, r.to), Field: field, Value: r.to, Want: "a VRF that no other value has for this source VRF",
	}
}

// validateVRF checks a table.
func validateVRF(_ string, v *nat.Nat44VrfTable) error {
	var f faults
	seen := map[uint32]int{}
	for i, to := range v.GetDestVrfIds() {
		if first, twice := seen[to]; twice {
			f.Add(fmt.Sprintf("dest_vrf_ids[%d]", i), to, "each VRF once; dest_vrf_ids[%d] has it already", first)
			continue
		}
		seen[to] = i
	}
	return f.Err()
}

// destinations returns the VRFs in a fixed order: VPP has a set of them.
func destinations(v *nat.Nat44VrfTable) []uint32 {
	return slices.Sorted(slices.Values(v.GetDestVrfIds()))
}

// unlessGone returns nil for an item that VPP does not have.
func unlessGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// createVRF makes a table with its routes. VPP refuses a table that exists. Extra routes of
// such a table stay until the next Retrieve reports them.
func (h *handler) createVRF(ctx context.Context, _ string, v *nat.Nat44VrfTable) (struct{}, error) {
	q := &nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: v.GetSrcVrfId(), IsAdd: true}
	err := h.API.Call(ctx, q, &nat44_ed.Nat44EdAddDelVrfTableReply{})
	if err != nil && !errors.Is(err, api.VALUE_EXIST) {
		return struct{}{}, err
	}
	return struct{}{}, h.setRoutes(ctx, v.GetSrcVrfId(), v.GetDestVrfIds(), true)
}

// updateVRF adds new routes before it removes old ones. So packets find a route at any time.
func (h *handler) updateVRF(ctx context.Context, _ string, old, v *nat.Nat44VrfTable, _ struct{}) (struct{}, error) {
	if err := h.setRoutes(ctx, v.GetSrcVrfId(), lists.Without(v.GetDestVrfIds(), old.GetDestVrfIds()), true); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, h.setRoutes(ctx, v.GetSrcVrfId(), lists.Without(old.GetDestVrfIds(), v.GetDestVrfIds()), false)
}

// setRoutes adds routes to a table, or removes them. A route that is there, or that is gone, is
// no error.
func (h *handler) setRoutes(ctx context.Context, from uint32, to []uint32, add bool) error {
	var steps []*conn.Step
	for _, id := range to {
		q := &nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: from, VrfID: id, IsAdd: add}
		steps = append(steps, conn.Ask(q, &nat44_ed.Nat44EdAddDelVrfRouteReply{}))
	}
	err := h.API.Batch(ctx, steps...)
	for _, s := range steps {
		if is := add && errors.Is(s.Err, api.VALUE_EXIST) || !add && isGone(s.Err); s.Err != nil && !is {
			return s.Err
		}
	}
	if _, refused := errors.AsType[*conn.Refusal](err); refused {
		return nil
	}
	return err
}

// readVRFs returns the routes of each table, by its number. It reads VPP's command line: the
// messages say too much. VPP counts the slots of removed routes, too, and sends whatever
// follows its routes in memory (nat44_ed_api.c, vec_len of a pool). The first of the two
// messages, which VPP has before 23.06, does not even tell the number of the table.
func (h *handler) readVRFs(ctx context.Context) (map[uint32][]uint32, error) {
	if !h.API.Has(&nat44_ed.Nat44EdAddDelVrfTable{}) {
		return nil, nil //nolint:nilnil // without the message there are no tables
	}
	reply := &vlib.CliInbandReply{}
	err := h.API.Call(ctx, &vlib.CliInband{Cmd: "show nat44 vrf tables"}, reply)
	return parseVRFs(reply.Reply), err
}

// parseVRFs reads lines of "table 7:" and "[0] vrf-id 8" (VPP nat44_ed_cli.c,
// nat44_ed_show_vrf_tables_command_fn). Other lines are skipped. A table without routes has a
// nil slice.
func parseVRFs(text string) map[uint32][]uint32 {
	out, table := map[uint32][]uint32{}, uint32(0)
	for line := range strings.Lines(text) {
		var n, id uint32
		line = strings.TrimSpace(line)
		if _, err := fmt.Sscanf(line, "table %d:", &id); err == nil {
			table, out[id] = id, nil
		} else if _, err := fmt.Sscanf(line, "[%d] vrf-id %d", &n, &id); err == nil {
			out[table] = append(out[table], id)
		}
	}
	return out
}

// retrieveRoutes yields the declared routes that VPP has. A route that nobody declares belongs to
// its table: retrieveVRFs reports it there, and a table that is ours loses it.
func (h *handler) retrieveRoutes(ctx context.Context, wanted []scheduler.Desired[*nat.Nat44VrfRoute]) iter.Seq2[scheduler.Found[*nat.Nat44VrfRoute, struct{}], error] {
	type found = scheduler.Found[*nat.Nat44VrfRoute, struct{}]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		all, err := h.readVRFs(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		declared := map[vrfRoute]bool{}
		for _, w := range wanted {
			declared[routeOf(w.Value)] = true
		}
		if learns {
			h.routes.replace(declared)
		}
		stands := map[vrfRoute]bool{}
		for from, destinations := range all {
			for _, to := range destinations {
				stands[vrfRoute{from, to}] = true
			}
		}
		for _, w := range wanted {
			if stands[routeOf(w.Value)] && !yield(found{Key: w.Key, Value: w.Value}, nil) {
				return
			}
		}
	})
}

// retrieveVRFs yields the tables, with the routes that are not values of their own.
func (h *handler) retrieveVRFs(ctx context.Context, wanted []scheduler.Desired[*nat.Nat44VrfTable]) iter.Seq2[scheduler.Found[*nat.Nat44VrfTable, struct{}], error] {
	type found = scheduler.Found[*nat.Nat44VrfTable, struct{}]
	return func(yield func(found, error) bool) {
		all, err := h.readVRFs(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		declared := map[uint32]bool{}
		for _, w := range wanted {
			declared[w.Value.GetSrcVrfId()] = true
		}
		for from, to := range all {
			to = slices.DeleteFunc(slices.Clone(to), func(id uint32) bool { return h.routes.has(vrfRoute{from, id}) })
			if !yield(found{Value: &nat.Nat44VrfTable{SrcVrfId: from, DestVrfIds: to}, OwnerUnknown: !declared[from]}, nil) {
				return
			}
		}
	}
}

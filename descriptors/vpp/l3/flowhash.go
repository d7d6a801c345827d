package l3

import (
	"context"
	"fmt"
	"strconv"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/unreported"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// defaultFlowHash is the flow hash of a new table, of all releases from 22.02 on (VPP
// ip_flow_hash.h, IP_FLOW_HASH_DEFAULT). The model has no field for the flow label.
const defaultFlowHash = ip.IP_API_FLOW_HASH_SRC_IP | ip.IP_API_FLOW_HASH_DST_IP | ip.IP_API_FLOW_HASH_SRC_PORT |
	ip.IP_API_FLOW_HASH_DST_PORT | ip.IP_API_FLOW_HASH_PROTO | ip.IP_API_FLOW_HASH_FLOW_LABEL

// A hashField is a field of the settings, with its bit in VPP.
type hashField struct {
	on  *bool
	bit ip.IPFlowHashConfig
}

// hashFields returns all fields of s.
func hashFields(s *l3.VrfTable_FlowHashSettings) []hashField {
	return []hashField{
		{&s.UseSrcIp, ip.IP_API_FLOW_HASH_SRC_IP}, {&s.UseDstIp, ip.IP_API_FLOW_HASH_DST_IP},
		{&s.UseSrcPort, ip.IP_API_FLOW_HASH_SRC_PORT}, {&s.UseDstPort, ip.IP_API_FLOW_HASH_DST_PORT},
		{&s.UseProtocol, ip.IP_API_FLOW_HASH_PROTO}, {&s.Reverse, ip.IP_API_FLOW_HASH_REVERSE},
		{&s.Symmetric, ip.IP_API_FLOW_HASH_SYMETRIC},
	}
}

// flowHashOf returns the fields that ECMP hashes.
func flowHashOf(s *l3.VrfTable_FlowHashSettings) (config ip.IPFlowHashConfig) {
	if s == nil {
		return defaultFlowHash
	}
	for _, field := range hashFields(s) {
		if *field.on {
			config |= field.bit
		}
	}
	return config
}

// settingsOf is the inverse of flowHashOf.
func settingsOf(config ip.IPFlowHashConfig) *l3.VrfTable_FlowHashSettings {
	s := &l3.VrfTable_FlowHashSettings{}
	for _, field := range hashFields(s) {
		*field.on = config&field.bit != 0
	}
	return s
}

// setFlowHash sets the flow hash of a table, and notes it.
func (h handler) setFlowHash(ctx context.Context, v *l3.VrfTable) error {
	done := h.hashes.begin(tableKey(v), v.GetFlowHashSettings())
	af := ip_types.ADDRESS_IP4
	if isIPv6(v) {
		af = ip_types.ADDRESS_IP6
	}
	request := &ip.SetIPFlowHashV2{TableID: v.GetId(), Af: af, FlowHashConfig: flowHashOf(v.GetFlowHashSettings())}
	if err := h.API.Call(ctx, request, &ip.SetIPFlowHashV2Reply{}); err != nil {
		return err
	}
	done()
	return nil
}

// resetFlowHash restores VPP's default if the flow hash may be another one.
func (h handler) resetFlowHash(ctx context.Context, v *l3.VrfTable) error {
	if v.GetFlowHashSettings() == nil && !h.hashes.mayDiffer(tableKey(v)) {
		return nil
	}
	return h.setFlowHash(ctx, &l3.VrfTable{Id: v.GetId(), Protocol: v.GetProtocol()})
}

// flowHashes are notes of the settings of tables, since VPP does not report them. A table without a note has VPP's
// default.
type flowHashes struct{ notes *unreported.Notes }

// newFlowHashes returns the notes of earlier runs of the agent.
func newFlowHashes(o Options) flowHashes {
	return flowHashes{unreported.New(unreported.Options{Prefix: "vpp/flow-hash/", Memory: o.Memory, Run: o.Run, Log: o.Log})}
}

// nameOf returns the name of a table's note: its IP version and ID.
func (flowHashes) nameOf(t ip.IPTable) string { return fmt.Sprintf("%t/%d", t.IsIP6, t.TableID) }

// begin notes that VPP is about to get settings for a table; nil: its default. done is called when it has them.
func (r flowHashes) begin(t ip.IPTable, s *l3.VrfTable_FlowHashSettings) (done func()) {
	set := r.notes.Begin(r.nameOf(t))
	return func() {
		if s == nil {
			r.forget(t)
			return
		}
		set(fmt.Appendf(nil, "%d", flowHashOf(s)))
	}
}

// forget forgets a table that was deleted, or has VPP's default.
func (r flowHashes) forget(t ip.IPTable) { r.notes.Forget(r.nameOf(t)) }

// mayDiffer tells whether the flow hash of a table may be another one than VPP's default.
func (r flowHashes) mayDiffer(t ip.IPTable) bool {
	_, state := r.notes.Of(r.nameOf(t))
	return state != unreported.None
}

// of returns the settings of a table. Unknown ones are reported so that they differ from the
// declared ones, which are then set again.
func (r flowHashes) of(t ip.IPTable, declared *l3.VrfTable_FlowHashSettings) *l3.VrfTable_FlowHashSettings {
	note, state := r.notes.Of(r.nameOf(t))
	if config, err := strconv.ParseUint(string(note), 10, 32); state == unreported.Known && err == nil {
		return settingsOf(ip.IPFlowHashConfig(config))
	}
	if declared == nil && state != unreported.None {
		return &l3.VrfTable_FlowHashSettings{}
	}
	return nil
}

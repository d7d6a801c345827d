package l3

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// defaultFlowHash is the flow hash of a new table, of all releases from 22.02 on (VPP
// ip_flow_hash.h, IP_FLOW_HASH_DEFAULT). The model has no field for the flow label.
const defaultFlowHash = ip.IP_API_FLOW_HASH_SRC_IP | ip.IP_API_FLOW_HASH_DST_IP | ip.IP_API_FLOW_HASH_SRC_PORT |
	ip.IP_API_FLOW_HASH_DST_PORT | ip.IP_API_FLOW_HASH_PROTO | ip.IP_API_FLOW_HASH_FLOW_LABEL

// flowHashOf returns the fields that ECMP hashes.
func flowHashOf(s *l3.VrfTable_FlowHashSettings) (config ip.IPFlowHashConfig) {
	if s == nil {
		return defaultFlowHash
	}
	for _, one := range []struct {
		on  bool
		bit ip.IPFlowHashConfig
	}{
		{s.GetUseSrcIp(), ip.IP_API_FLOW_HASH_SRC_IP}, {s.GetUseDstIp(), ip.IP_API_FLOW_HASH_DST_IP},
		{s.GetUseSrcPort(), ip.IP_API_FLOW_HASH_SRC_PORT}, {s.GetUseDstPort(), ip.IP_API_FLOW_HASH_DST_PORT},
		{s.GetUseProtocol(), ip.IP_API_FLOW_HASH_PROTO}, {s.GetReverse(), ip.IP_API_FLOW_HASH_REVERSE},
		{s.GetSymmetric(), ip.IP_API_FLOW_HASH_SYMETRIC},
	} {
		if one.on {
			config |= one.bit
		}
	}
	return config
}

// setFlowHash sets the flow hash of a table, and notes it.
func (h handler) setFlowHash(ctx context.Context, v *l3.VrfTable) error {
	key, life := tableKey(v), h.RunNumber()
	h.hashes.begin(key)
	af := ip_types.ADDRESS_IP4
	if isIPv6(v) {
		af = ip_types.ADDRESS_IP6
	}
	request := &ip.SetIPFlowHashV2{TableID: v.GetId(), Af: af, FlowHashConfig: flowHashOf(v.GetFlowHashSettings())}
	if err := h.API.Call(ctx, request, &ip.SetIPFlowHashV2Reply{}); err != nil {
		return err
	}
	h.hashes.set(life, key, v.GetFlowHashSettings())
	return nil
}

// resetFlowHash restores VPP's default if the flow hash may be another one.
func (h handler) resetFlowHash(ctx context.Context, v *l3.VrfTable) error {
	if v.GetFlowHashSettings() == nil && !h.hashes.mayDiffer(tableKey(v)) {
		return nil
	}
	return h.setFlowHash(ctx, &l3.VrfTable{Id: v.GetId(), Protocol: v.GetProtocol()})
}

// flowHashes is the record of flow hashes, since VPP does not report them:
//
//	settings    were set on this connection; a value with others needs an Update
//	differ      tables with settings that the agent may have set, also in an earlier run
//
// On a new connection, VPP may be another process, and its settings are unknown. Then all
// declared settings are set again.
type flowHashes struct {
	memory scheduler.Memory // for differ; nil: none
	log    *slog.Logger

	mu         sync.Mutex // guards the fields below
	connection int        // number of the connection on which settings were set
	settings   map[ip.IPTable]*l3.VrfTable_FlowHashSettings
	differ     map[ip.IPTable]bool
}

// hashKeys is the prefix of the keys in the memory, which has other records, too. The IP version
// and the ID of the table follow.
const hashKeys = "vpp/flow-hash/"

// newFlowHashes returns the record of an earlier run of the agent.
func newFlowHashes(memory scheduler.Memory, log *slog.Logger) *flowHashes {
	r := &flowHashes{memory: memory, log: cmp.Or(log, slog.Default()), settings: map[ip.IPTable]*l3.VrfTable_FlowHashSettings{}, differ: map[ip.IPTable]bool{}}
	if memory == nil {
		return r
	}
	for key := range memory.Load() {
		var t ip.IPTable
		text, is := strings.CutPrefix(key, hashKeys)
		if _, err := fmt.Sscanf(text, "%t/%d", &t.IsIP6, &t.TableID); is && err == nil {
			r.differ[t] = true
		}
	}
	return r
}

// begin notes that VPP is about to get settings for a table. They are unknown until set is called.
func (r *flowHashes) begin(t ip.IPTable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.settings, t)
	r.note(t, true)
}

// set notes the settings that a table got on a connection; nil: VPP's default.
func (r *flowHashes) set(connection int, t ip.IPTable, s *l3.VrfTable_FlowHashSettings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if connection != r.connection {
		clear(r.settings)
		r.connection = connection
	}
	if s == nil {
		r.note(t, false)
		return
	}
	r.settings[t] = s
}

// forget forgets a table that was deleted.
func (r *flowHashes) forget(t ip.IPTable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.settings, t)
	r.note(t, false)
}

// note changes differ. The caller holds mu.
func (r *flowHashes) note(t ip.IPTable, differs bool) {
	if r.differ[t] == differs {
		return
	}
	var data []byte // nil removes the record
	if differs {
		r.differ[t], data = true, []byte("set")
	} else {
		delete(r.differ, t)
	}
	if r.memory == nil {
		return
	}
	key := fmt.Sprintf("%s%t/%d", hashKeys, t.IsIP6, t.TableID)
	if err := r.memory.Save(maps.All(map[string][]byte{key: data})); err != nil {
		r.log.Error("the record of flow hashes cannot be saved; after a restart of the agent, a removed one may stay in VPP", "table", t.TableID, "err", err)
	}
}

// mayDiffer tells whether the flow hash of a table may be another one than VPP's default.
func (r *flowHashes) mayDiffer(t ip.IPTable) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.differ[t]
}

// of returns the settings of a table. Unknown ones are reported so that they differ from the
// declared ones, which are then set again.
func (r *flowHashes) of(connection int, t ip.IPTable, declared *l3.VrfTable_FlowHashSettings) *l3.VrfTable_FlowHashSettings {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.settings[t]; s != nil && r.connection == connection {
		return s
	}
	if declared == nil && r.differ[t] {
		return &l3.VrfTable_FlowHashSettings{}
	}
	return nil
}

package ipfix

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/flowprobe"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipfix"
	"github.com/keyplane/keyplane/scheduler"
)

// VPP's default timers in seconds (src/plugins/flowprobe/flowprobe.h). VPP takes noNumber for
// them; 0 disables a timer.
const (
	defaultActive  = 15
	defaultPassive = 120
)

// paramsDescriptor implements the parameters of recording. It has no Update: VPP refuses a
// change while interfaces are recorded, and those depend on the parameters, so the scheduler
// ends their recording before Delete.
func (h *handler) paramsDescriptor() scheduler.Descriptor[*ipfix.FlowProbeParams, struct{}] {
	return scheduler.Descriptor[*ipfix.FlowProbeParams, struct{}]{
		Name:  ParamsName,
		Model: models.For[*ipfix.FlowProbeParams](),

		Validate:   validateParams,
		Equivalent: func(_ string, old, new *ipfix.FlowProbeParams) bool { return paramsOf(old) == paramsOf(new) },

		Create: func(ctx context.Context, _ string, v *ipfix.FlowProbeParams) (struct{}, error) {
			return struct{}{}, h.createParams(ctx, paramsOf(v))
		},
		Delete:   h.deleteParams,
		Retrieve: readback.Retriever[*ipfix.FlowProbeParams]{Read: h.readParams, ID: func(*ipfix.FlowProbeParams) string { return "" }}.Retrieve,
	}
}

func validateParams(_ string, v *ipfix.FlowProbeParams) error {
	var f models.Faults
	if paramsOf(v).record == 0 {
		f.Add("record_l3", nil, "at least one of record_l2, record_l3 and record_l4")
	}
	return f.Err()
}

// params are the parameters with defaults filled in. A record of 0 records nothing.
type params struct {
	record          flowprobe.FlowprobeRecordFlags
	active, passive uint32 // seconds
}

func paramsOf(v *ipfix.FlowProbeParams) params {
	out := params{active: v.GetActiveTimer(), passive: v.GetPassiveTimer()}
	if v.GetRecordL2() {
		out.record |= flowprobe.FLOWPROBE_RECORD_FLAG_L2
	}
	if v.GetRecordL3() {
		out.record |= flowprobe.FLOWPROBE_RECORD_FLAG_L3
	}
	if v.GetRecordL4() {
		out.record |= flowprobe.FLOWPROBE_RECORD_FLAG_L4
	}
	if out.active == noNumber {
		out.active = defaultActive
	}
	if out.passive == noNumber {
		out.passive = defaultPassive
	}
	return out
}

// createParams sets the parameters. It refuses an active timer for which VPP may lack memory; see
// tables.
func (h *handler) createParams(ctx context.Context, to params) error {
	now, err := h.params(ctx)
	if err != nil {
		return err
	}
	exist, err := h.haveTables(ctx)
	switch {
	case err != nil:
		return err
	case now.active == 0 && to.active != 0 && !exist:
		return fmt.Errorf("%w: active_timer is %d, and VPP may have recorded with 0. "+
			"Then it has no tables for flows, makes none any more, and would die at the next packet", ErrStateless, to.active)
	case now.active != 0 && to.active == 0 && exist:
		return fmt.Errorf("%w: active_timer is 0, and VPP has recorded with another one. "+
			"Then it has no entry for single packets, makes none any more, and would die at the next packet", ErrStateful)
	}
	return h.setParams(ctx, to)
}

// deleteParams records nothing any more. An active timer of 0 stays: VPP is asked for it
// before it gets another one; see tables.
func (h *handler) deleteParams(ctx context.Context, _ string, v *ipfix.FlowProbeParams, _ struct{}) error {
	to := params{active: defaultActive, passive: defaultPassive}
	exist, err := h.haveTables(ctx)
	if err != nil {
		return err
	}
	if paramsOf(v).active == 0 && !exist {
		to.active = 0
	}
	return h.setParams(ctx, to)
}

// setParams sets the parameters. If VPP refuses because deleted interfaces count as recorded,
// those recordings are ended first. Other programs may record interfaces, too: then it fails.
func (h *handler) setParams(ctx context.Context, to params) error {
	set := func() error {
		request := &flowprobe.FlowprobeParams{RecordFlags: to.record, ActiveTimer: to.active, PassiveTimer: to.passive}
		return h.API.Call(ctx, request, &flowprobe.FlowprobeParamsReply{})
	}
	err := set()
	if !errors.Is(err, api.UNSUPPORTED) && !errors.Is(err, api.UNSPECIFIED) { // the latter is from VPP 22.02
		return err
	}
	recorded, errRead := h.readFeatures(ctx, true) // it notes those of deleted interfaces
	if err := errors.Join(errRead, h.Interfaces.Leftovers().Reclaim(ctx, h.API)); err != nil {
		return err
	}
	if err = set(); err != nil && len(recorded) > 0 {
		err = fmt.Errorf("VPP changes parameters only while no interface is recorded; %s is: %w", recorded[0].value.GetInterface(), err)
	}
	return err
}

// readParams returns the parameters, unless nothing is recorded.
func (h *handler) readParams(ctx context.Context, _ bool) ([]*ipfix.FlowProbeParams, error) {
	now, err := h.params(ctx)
	if errors.Is(err, scheduler.ErrUnimplemented) {
		return nil, nil // and none can be set
	}
	if err != nil || now.record == 0 {
		return nil, err
	}
	return []*ipfix.FlowProbeParams{{
		ActiveTimer: now.active, PassiveTimer: now.passive,
		RecordL2: now.record&flowprobe.FLOWPROBE_RECORD_FLAG_L2 != 0,
		RecordL3: now.record&flowprobe.FLOWPROBE_RECORD_FLAG_L3 != 0,
		RecordL4: now.record&flowprobe.FLOWPROBE_RECORD_FLAG_L4 != 0,
	}}, nil
}

// tables is the knowledge about VPP's tables of flows. VPP makes its memory when the first
// interface is recorded, and never later: tables if there is an active timer then, and
// otherwise an entry for the packet that is exported alone. It dies at the first packet that
// needs the other memory (25.10, flowprobe_create_state_tables and add_to_flow_record_state).
// Only its command line shows the tables, and nothing shows the other memory.
//
//	first interface recorded | later active timer 0 | later another one
//	with an active timer     | kills VPP            | works
//	with the active timer 0  | works                | kills VPP
//
// So an active timer of 0 in VPP may change only if tables exist, and another one may become
// 0 only if they do not.
type tables struct {
	mu  sync.Mutex
	run string // of VPP, in which an interface was recorded with an active timer; empty: none
}

// haveTables reports whether VPP has tables. If this agent has not recorded with an active timer in
// this run of VPP, an earlier one may have.
func (h *handler) haveTables(ctx context.Context) (bool, error) {
	run := h.Run()
	if h.tables.exist(run) {
		return true, nil
	}
	text, err := h.command(ctx, "show flowprobe statistics")
	if err != nil || !strings.Contains(text, "Pool utilisation thread") {
		return false, err
	}
	h.tables.made(run)
	return true, nil
}

// made records that an interface is recorded with an active timer.
func (t *tables) made(run string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run = run
}

// exist reports whether the tables are known to exist in this run of VPP.
func (t *tables) exist(run string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run == run && run != ""
}

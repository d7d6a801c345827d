package ipfix

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.fd.io/govpp/binapi/flowprobe"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
)

// everyInterface selects all recordings.
const everyInterface = ifindex.All

// isOld reports whether this is a VPP before 22.06. It reports parameters and recordings on its
// command line only, and its request for a recording has no direction.
func (h *handler) isOld() bool { return !h.API.Has(&flowprobe.FlowprobeInterfaceAddDel{}) }

// set begins or ends a recording. An old VPP takes the flags of its request for the number of
// a variant: its flag for IPv4 would record IPv6 (flowprobe.c,
// vl_api_flowprobe_tx_interface_add_del_t_handler). So it gets that number.
func (h *handler) set(ctx context.Context, at interface_types.InterfaceIndex, m Meta, add bool) error {
	if h.isOld() {
		request := &flowprobe.FlowprobeTxInterfaceAddDel{IsAdd: add, Which: flowprobe.FlowprobeWhichFlags(m.Which), SwIfIndex: at}
		return h.API.Call(ctx, request, &flowprobe.FlowprobeTxInterfaceAddDelReply{})
	}
	request := &flowprobe.FlowprobeInterfaceAddDel{IsAdd: add, Which: m.Which, Direction: m.Direction, SwIfIndex: at}
	return h.API.Call(ctx, request, &flowprobe.FlowprobeInterfaceAddDelReply{})
}

// params reads the parameters. An error wraps scheduler.ErrUnimplemented if VPP lacks the plugin.
func (h *handler) params(ctx context.Context) (params, error) {
	if _, err := h.API.First(&flowprobe.FlowprobeParams{}); err != nil {
		return params{}, err
	}
	if !h.isOld() {
		var r flowprobe.FlowprobeGetParamsReply
		err := h.API.Call(ctx, &flowprobe.FlowprobeGetParams{}, &r)
		return params{r.RecordFlags, r.ActiveTimer, r.PassiveTimer}, err
	}
	text, err := h.command(ctx, "show flowprobe params")
	if err != nil {
		return params{}, err
	}
	return paramsIn(text)
}

// recordings reads the recording of one interface, or of all.
func (h *handler) recordings(ctx context.Context, at interface_types.InterfaceIndex) (map[interface_types.InterfaceIndex]Meta, error) {
	if _, err := h.API.First(&flowprobe.FlowprobeParams{}); err != nil {
		return nil, err
	}
	out := map[interface_types.InterfaceIndex]Meta{}
	if !h.isOld() {
		all, err := conn.Dump[flowprobe.FlowprobeInterfaceDetails](ctx, h.API, &flowprobe.FlowprobeInterfaceDump{SwIfIndex: at})
		for _, d := range all {
			out[d.SwIfIndex] = Meta{d.Which, d.Direction}
		}
		return out, err
	}
	text, err := h.command(ctx, "show flowprobe feature")
	if err != nil {
		return nil, err
	}
	interfaces, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
	if err != nil {
		return nil, err
	}
	indexes := map[string]uint32{}
	for _, d := range interfaces {
		indexes[d.InterfaceName] = uint32(d.SwIfIndex)
	}
	return recordingsIn(text, indexes)
}

// command asks VPP's command line.
func (h *handler) command(ctx context.Context, line string) (string, error) {
	reply := &vlib.CliInbandReply{}
	err := h.API.Call(ctx, &vlib.CliInband{Cmd: line}, reply)
	return reply.Reply, err
}

// paramsIn reads " l2 l3 active: 10 passive: 20" (VPP 22.02, format_flowprobe_params). VPP
// prints the timers as signed numbers.
func paramsIn(text string) (out params, err error) {
	flags := map[string]flowprobe.FlowprobeRecordFlags{
		"l2": flowprobe.FLOWPROBE_RECORD_FLAG_L2, "l3": flowprobe.FLOWPROBE_RECORD_FLAG_L3, "l4": flowprobe.FLOWPROBE_RECORD_FLAG_L4,
	}
	timers := map[string]*uint32{"active:": &out.active, "passive:": &out.passive}
	words := strings.Fields(text)
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		timer := timers[word]
		if timer == nil {
			if flags[word] == 0 {
				return params{}, fmt.Errorf("show flowprobe params says %q: %w", text, conn.ErrProtocol)
			}
			out.record |= flags[word]
			continue
		}
		if len(words) == 0 {
			return params{}, fmt.Errorf("show flowprobe params says %q: %w", text, conn.ErrProtocol)
		}
		seconds, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			return params{}, fmt.Errorf("show flowprobe params says %q: %w", text, conn.ErrProtocol)
		}
		*timer, words = uint32(seconds), words[1:]
	}
	return out, nil
}

// deleted matches the name of a deleted interface: "DELETED (7)".
var deleted = regexp.MustCompile(`^DELETED \((\d+)\)$`)

// recordingsIn reads lines of " loop0 ip4" (VPP 22.02, flowprobe_show_feature_command_fn).
// indexes are those of interfaces by VPP's name. An interface that is not among them is left
// out: somebody has deleted it after VPP was asked for the page.
func recordingsIn(text string, indexes map[string]uint32) (map[interface_types.InterfaceIndex]Meta, error) {
	which := map[string]flowprobe.FlowprobeWhich{
		"ip4": flowprobe.FLOWPROBE_WHICH_IP4, "ip6": flowprobe.FLOWPROBE_WHICH_IP6, "l2": flowprobe.FLOWPROBE_WHICH_L2,
	}
	out := map[interface_types.InterfaceIndex]Meta{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		end := strings.LastIndexByte(line, ' ')
		if end < 0 {
			return nil, fmt.Errorf("show flowprobe feature says %q: %w", line, conn.ErrProtocol)
		}
		name := line[:end]
		kind, known := which[line[end+1:]]
		if !known {
			return nil, fmt.Errorf("show flowprobe feature says %q: %w", line, conn.ErrProtocol)
		}
		index, exists := indexes[name]
		if of := deleted.FindStringSubmatch(name); of != nil {
			n, err := strconv.ParseUint(of[1], 10, 32)
			index, exists = uint32(n), err == nil
		}
		if exists {
			out[interface_types.InterfaceIndex(index)] = Meta{kind, flowprobe.FLOWPROBE_DIRECTION_TX}
		}
	}
	return out, nil
}

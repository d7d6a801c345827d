package srv6

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/sr_types"
	"go.fd.io/govpp/binapi/vlib"
)

// run runs a command line of VPP, and returns its output. A command that fails explains that in
// its output, and VPP adds a return value without a meaning, which is no error here.
func (h *handler) run(ctx context.Context, line string) (string, error) {
	reply := &vlib.CliInbandReply{}
	err := h.API.Call(ctx, &vlib.CliInband{Cmd: line}, reply)
	if errors.Is(err, api.UNSPECIFIED) {
		return reply.Reply, nil
	}
	return reply.Reply, err
}

// page returns a page of VPP's command line. Unlike run, it changes nothing, so it fails like
// any other read.
func (h *handler) page(ctx context.Context, command string) (string, error) {
	reply := &vlib.CliInbandReply{}
	err := h.API.Call(ctx, &vlib.CliInband{Cmd: command}, reply)
	return reply.Reply, err
}

// A shownSID is a SID as "show sr localsids" has it. The interfaces have VPP's own names.
type shownSID struct {
	function string // "End", "DX4", "End.AD"; empty: the SID is not on the page
	next     netip.Addr
	out, in  string
}

// parseSIDs reads the page (VPP sr_localsid.c, show_sr_localsid_command_fn). Lines of other
// forms are ignored.
func parseSIDs(text string) map[netip.Addr]shownSID {
	out := map[netip.Addr]shownSID{}
	var at netip.Addr
	for line := range strings.Lines(text) {
		field, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" {
			continue
		}
		one := out[at]
		switch field {
		case "Address":
			address, _, _ := strings.Cut(value, "/") // VPP 22.02 shows no prefix length
			at, _ = netip.ParseAddr(address)
			continue
		case "Behavior":
			one.function, _, _ = strings.Cut(value, " (") // the title follows
		case "Next-hop":
			one.next, _ = netip.ParseAddr(value)
		case "Outgoing iface":
			one.out = value
		case "Incoming iface":
			one.in = value
		default:
			continue
		}
		out[at] = one
	}
	return out
}

// behavior returns the function of a SID on the page; 0: the model does not have it. The page
// leaves out only SIDs with End.DX2 and a VLAN tag.
func (s shownSID) behavior() sr_types.SrBehavior {
	switch s.function {
	case "", "DX2":
		return behaviorDX2
	case "End":
		return behaviorEnd
	case "X":
		return behaviorX
	case "T":
		return behaviorT
	case "DX4":
		return behaviorDX4
	case "DX6":
		return behaviorDX6
	case "DT4":
		return behaviorDT4
	case "DT6":
		return behaviorDT6
	case "End.AD":
		return behaviorAD
	}
	return 0
}

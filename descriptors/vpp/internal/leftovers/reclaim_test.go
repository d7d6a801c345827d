package leftovers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// TestFillersLeaveWithTheAgent ends the agent while an index has its filler, which nobody else
// would delete.
func TestFillersLeaveWithTheAgent(t *testing.T) {
	v := simulated.Start(t, simulated.Newest())
	c := v.Dial()
	gone := v.Loopback(c, "gone")
	v.Ask(c, &vppif.DeleteLoopback{SwIfIndex: gone}, &vppif.DeleteLoopbackReply{})

	var r leftovers.Registry
	ctx, stop := context.WithCancel(t.Context())
	filled := false
	r.Note(uint32(gone), "", "neighbour", func(ctx context.Context, at interface_types.InterfaceIndex) error {
		filled = at == gone && strings.Contains(v.Show("show interface"), "loop")
		stop()
		return ctx.Err()
	})
	if err := r.Reclaim(ctx, c); err != nil || !filled {
		t.Fatalf("the state ended with %v; with a filler: %t", err, filled)
	}
	if page := v.Show("show interface"); strings.Contains(page, "loop") {
		t.Errorf("a filler is left:\n%s", page)
	}

	r.Close()
	r.Note(uint32(gone), "", "neighbour", func(context.Context, interface_types.InterfaceIndex) error { return nil })
	if err := r.Reclaim(t.Context(), c); !errors.Is(err, leftovers.ErrClosed) {
		t.Errorf("after Close the error is %v; expected %v", err, leftovers.ErrClosed)
	}
}

// TestFillersOfAKilledAgent has fillers of an agent that was killed before it had deleted them, beside
// loopbacks of others.
func TestFillersOfAKilledAgent(t *testing.T) {
	v := simulated.Start(t, simulated.Newest())
	c := v.Dial()
	r := leftovers.Registry{FillerMAC: ethernet_types.MacAddress{2, 1, 2, 3, 4, 5}}
	bare := v.Show("show interface")
	v.Ask(c, &vppif.CreateLoopback{MacAddress: r.FillerMAC}, &vppif.CreateLoopbackReply{})
	var other vppif.CreateLoopbackReply
	v.Ask(c, &vppif.CreateLoopback{MacAddress: ethernet_types.MacAddress{2, 1, 2, 3, 4, 6}}, &other)
	v.Ask(c, &vppif.CreateLoopback{MacAddress: r.FillerMAC}, &vppif.CreateLoopbackReply{})

	for range 2 {
		all, err := r.Interfaces(t.Context(), c, true)
		if err != nil || len(all) != 2 || all[1].SwIfIndex != other.SwIfIndex {
			t.Errorf("the interfaces are %v, %v; want local0 and that of others", all, err)
		}
	}
	v.Ask(c, &vppif.DeleteLoopback{SwIfIndex: other.SwIfIndex}, &vppif.DeleteLoopbackReply{})
	if page := v.Show("show interface"); page != bare {
		t.Errorf("fillers are left:\n%s", page)
	}
}

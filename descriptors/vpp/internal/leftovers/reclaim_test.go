package leftovers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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

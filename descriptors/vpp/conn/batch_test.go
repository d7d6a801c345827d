package conn_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppsim"
)

func tables(of interface_types.InterfaceIndex, reply *vppif.SwInterfaceGetTableReply) *conn.Step {
	return conn.Ask(&vppif.SwInterfaceGetTable{SwIfIndex: of}, reply)
}

// TestBatch has requests sent at once, of which some are dumps and one is refused: all are answered.
func TestBatch(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	vpp.Watch()
	c := dial(t, vpp.Socket)
	var loop vppif.CreateLoopbackReply
	if err := c.Call(t.Context(), &vppif.CreateLoopback{}, &loop); err != nil {
		t.Fatal(err)
	}
	var all, one, nobody []vppif.SwInterfaceDetails
	var none []ip.IPAddressDetails
	list := func(index interface_types.InterfaceIndex, into *[]vppif.SwInterfaceDetails) *conn.Step {
		return conn.List(&vppif.SwInterfaceDump{SwIfIndex: index}, into)
	}
	steps := []*conn.Step{
		list(^interface_types.InterfaceIndex(0), &all),
		conn.List(&ip.IPAddressDump{SwIfIndex: loop.SwIfIndex}, &none),
		conn.Ask(&vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: loop.SwIfIndex, Tag: "a"}, &vppif.SwInterfaceTagAddDelReply{}),
		list(loop.SwIfIndex, &one),
		tables(9, &vppif.SwInterfaceGetTableReply{}),
		list(9, &nobody),
		tables(loop.SwIfIndex, &vppif.SwInterfaceGetTableReply{}),
	}
	vpp.Counts()
	if err := c.Batch(t.Context(), steps...); !errors.Is(err, api.INVALID_SW_IF_INDEX) {
		t.Errorf("the error is %v", err)
	}
	for i, s := range steps {
		if want := i == 4; errors.Is(s.Err, api.INVALID_SW_IF_INDEX) != want || !want && s.Err != nil {
			t.Errorf("step %d: %v", i, s.Err)
		}
	}
	if len(all) != 2 || len(none) != 0 || len(one) != 1 || one[0].Tag != "a" || len(nobody) != 0 {
		t.Errorf("details are %v, %v, %v, %v", all, none, one, nobody)
	}
	if n := vpp.Counts()["control_ping"]; n != 0 {
		t.Errorf("VPP was pinged %d times", n)
	}
	if err := c.Batch(t.Context()); err != nil {
		t.Errorf("nothing is asked: %v", err)
	}
}

// TestBatchIsCut has the connection end at each of some requests in turn: of what may have been
// answered each step says whether it was.
func TestBatchIsCut(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	vpp.Watch()
	for n := range 3 {
		c := dial(t, vpp.Socket)
		steps := make([]*conn.Step, 3)
		for i := range steps {
			steps[i] = tables(0, &vppif.SwInterfaceGetTableReply{})
		}
		vpp.DropAt(n+1, true)
		if err := c.Batch(t.Context(), steps...); !errors.Is(err, conn.ErrCut) {
			t.Errorf("cut at %d: %v", n, err)
		}
		for i, s := range steps {
			if answered := s.Err == nil; answered && i >= n || !answered && !errors.Is(s.Err, conn.ErrCut) {
				t.Errorf("cut at %d, step %d: %v", n, i, s.Err)
			}
		}
	}
}

// TestBatchWithoutAMessage asks for something that VPP lacks: nothing is asked.
func TestBatchWithoutAMessage(t *testing.T) {
	sim, socket := start(t, vppsim.Options{Release: "22.02"})
	c := dial(t, socket)
	first := tables(0, &vppif.SwInterfaceGetTableReply{})
	newer := conn.Ask(&l2.BridgeDomainAddDelV2{}, &l2.BridgeDomainAddDelV2Reply{})
	var missing *conn.Missing
	if err := c.Batch(t.Context(), first, newer); !errors.As(err, &missing) || !errors.As(first.Err, &missing) || !errors.As(newer.Err, &missing) {
		t.Errorf("the error is %v, of the steps %v and %v", err, first.Err, newer.Err)
	}
	if asked := sim.Counts(); len(asked) != 0 {
		t.Errorf("asked was %v", asked)
	}
}

// TestReplyBehindDetails has requests answered by details and a reply behind them, in the midst
// of others.
func TestReplyBehindDetails(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	c := dial(t, vpp.Socket)
	var loop vppif.CreateLoopbackReply
	vpp.Ask(c, &vppif.CreateLoopback{}, &loop)
	vpp.Ask(c, &nat44_ed.Nat44EdPluginEnableDisable{Enable: true}, &nat44_ed.Nat44EdPluginEnableDisableReply{})
	set := &nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: loop.SwIfIndex}
	var before, after []nat44_ed.Nat44EdOutputInterfaceDetails
	get := func(into *[]nat44_ed.Nat44EdOutputInterfaceDetails) *conn.Step {
		step := conn.List(&nat44_ed.Nat44EdOutputInterfaceGet{}, into)
		step.Reply = &nat44_ed.Nat44EdOutputInterfaceGetReply{}
		return step
	}
	steps := []*conn.Step{
		get(&before), conn.Ask(set, &nat44_ed.Nat44EdAddDelOutputInterfaceReply{}),
		conn.Ask(set, &nat44_ed.Nat44EdAddDelOutputInterfaceReply{}), get(&after), tables(0, &vppif.SwInterfaceGetTableReply{}),
	}
	if err := c.Batch(t.Context(), steps...); !errors.Is(err, api.VALUE_EXIST) || !errors.Is(steps[2].Err, api.VALUE_EXIST) {
		t.Errorf("the error is %v", err)
	}
	if len(before) != 0 || len(after) != 1 || after[0].SwIfIndex != loop.SwIfIndex || steps[3].Err != nil || steps[4].Err != nil {
		t.Errorf("before %v, after %v, steps %v, %v", before, after, steps[3].Err, steps[4].Err)
	}
	c.Close(conn.ErrLost)
	if err := c.Batch(t.Context(), steps...); !errors.Is(err, conn.ErrLost) || !errors.Is(steps[0].Err, conn.ErrLost) || !errors.Is(steps[3].Err, conn.ErrLost) {
		t.Errorf("without a connection the error is %v; steps %v, %v", err, steps[0].Err, steps[3].Err)
	}
}

// TestLongBatches has batches of more than 64 KiB one after the other and at once, beside single
// requests: each reply is about the interface of its request.
func TestLongBatches(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	c := dial(t, vpp.Socket)
	var loops [4]vppif.CreateLoopbackReply
	for i := range loops {
		vrf := uint32(i + 1)
		vpp.Ask(c, &vppif.CreateLoopback{}, &loops[i])
		vpp.Ask(c, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: vrf}}, &ip.IPTableAddDelReply{})
		vpp.Ask(c, &vppif.SwInterfaceSetTable{SwIfIndex: loops[i].SwIfIndex, VrfID: vrf}, &vppif.SwInterfaceSetTableReply{})
	}
	var wg sync.WaitGroup
	for i := range loops {
		wg.Go(func() {
			for range 3 {
				replies := make([]vppif.SwInterfaceGetTableReply, 4000)
				steps := make([]*conn.Step, len(replies))
				for n := range steps {
					steps[n] = tables(loops[i].SwIfIndex, &replies[n])
				}
				if err := c.Batch(t.Context(), steps...); err != nil {
					t.Error(err)
				}
				wrong := slices.IndexFunc(replies, func(r vppif.SwInterfaceGetTableReply) bool { return r.VrfID != uint32(i+1) })
				if wrong >= 0 {
					t.Errorf("batch %d: request %d is answered by %v", i, wrong, replies[wrong])
				}
				if err := c.Call(t.Context(), &vppif.SwInterfaceGetTable{SwIfIndex: 9}, &vppif.SwInterfaceGetTableReply{}); !errors.Is(err, api.INVALID_SW_IF_INDEX) {
					t.Errorf("between batches: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

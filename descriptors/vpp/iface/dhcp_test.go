package iface

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	vppif "go.fd.io/govpp/binapi/interface"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

func TestDHCPClientConforms(t *testing.T) {
	onEach(t, (*handler).clientDescriptor, conformance.Suite[*emptypb.Empty, struct{}]{
		Values: []scheduler.Desired[*emptypb.Empty]{empty(keys.Interface(base).DHCPClient()), empty(keys.Interface(other).DHCPClient())},
	}, "22.02")
}

func TestAutoconfConforms(t *testing.T) {
	nd := func(name string, routes bool) scheduler.Desired[*interfaces.Interface_IP6ND] {
		return scheduler.Desired[*interfaces.Interface_IP6ND]{Key: keys.Interface(name).IP6ND(), Value: &interfaces.Interface_IP6ND{AddressAutoconfig: true, InstallDefaultRoutes: routes}}
	}
	onEach(t, (*handler).autoconfDescriptor, conformance.Suite[*interfaces.Interface_IP6ND, struct{}]{
		Values:  []scheduler.Desired[*interfaces.Interface_IP6ND]{nd(base, true), nd(other, false)},
		Changes: []conformance.Change[*interfaces.Interface_IP6ND]{{Name: "routes", Key: nd(base, true).Key, From: nd(base, true).Value, To: nd(base, false).Value, How: conformance.Updated}},
	})
}

// TestDHCPWithoutItsMessages: on 22.02 it could not be read what a client has been given.
func TestDHCPWithoutItsMessages(t *testing.T) {
	h, _ := onVPP(t, "22.02")
	if _, err := h.clientDescriptor().Create(t.Context(), keys.Interface(base).DHCPClient(), &emptypb.Empty{}); !errors.Is(err, scheduler.ErrUnimplemented) {
		t.Errorf("it is %v, want it unimplemented", err)
	}
}

// TestClientOfAnInterfaceThatIsGone has a client outlive its interface, with a lease, and
// another interface get the index: the lease of the client no longer counts.
func TestClientOfAnInterfaceThatIsGone(t *testing.T) {
	h, vpp := onVPP(t, "")
	c := vpp.Dial()
	index := vpp.Loopback(c, "if1")
	h.index.(links)["if1"] = Meta{Index: uint32(index)}
	d := h.clientDescriptor()
	for range 2 {
		if _, err := d.Create(t.Context(), keys.Interface("if1").DHCPClient(), &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
		if leases, err := h.leases.Read(t.Context(), true); err != nil || len(leases) > 0 {
			t.Errorf("leases are %v, %v, want none", leases, err)
		}
		if err := vpp.Sim.Lease("if1", netip.MustParsePrefix("10.0.0.9/24"), netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		vpp.Ask(c, &vppif.DeleteLoopback{SwIfIndex: index}, &vppif.DeleteLoopbackReply{})
		if again := vpp.Loopback(c, "if1"); again != index {
			t.Fatalf("the interface has index %d", again)
		}
	}
}

// TestLeaseThatNobodyTellsOf has a lease end, of which VPP tells nobody.
func TestLeaseThatNobodyTellsOf(t *testing.T) {
	vpp := simulated.Start(t, "")
	s := scheduler.New(scheduler.Options{TransactionLog: txnlog.New(txnlog.Options{Out: testkit.Log(t), Full: true})})
	_, events, err := Register(s, Options{API: vpp.Dial(), Connection: "vpp", Leases: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- events.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	v, err := s.Value(keys.Interface("if1").Key(), &interfaces.Interface{Name: "if1", Type: interfaces.Interface_SOFTWARE_LOOPBACK, SetDhcpClient: true})
	if err == nil {
		_, err = s.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
	}
	if err != nil {
		t.Fatal(err)
	}
	watch := s.Watch(keys.DHCPLeases)
	defer watch.Close()
	for _, lease := range []netip.Prefix{netip.MustParsePrefix("10.0.0.9/24"), {}} {
		if err := vpp.Sim.Lease("if1", lease, netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, stands := s.Status(keys.Interface("if1").DHCPLease()); stands != lease.IsValid() {
			t.Errorf("with lease %v one is known: %t", lease, stands)
		}
	}
}

// settingAt returns the number of the message that makes a setting. A DHCP client needs a MAC
// address, which a dump and the ping behind it read before.
func settingAt(name string) int {
	if name == "DHCP client" {
		return 3
	}
	return 1
}

// TestUnansweredSettingsAreNoted breaks the connection after VPP has carried out a request and before
// it answers. VPP has the setting then, and gives it to the next interface with the index.
func TestUnansweredSettingsAreNoted(t *testing.T) {
	for name, set := range map[string]func(h *handler, index uint32) error{
		"autoconfiguration": func(h *handler, _ uint32) error {
			return h.setAutoconf(t.Context(), keys.Interface(base).IP6ND(), &interfaces.Interface_IP6ND{AddressAutoconfig: true})
		},
		"DHCP client": func(h *handler, _ uint32) error { return h.setClient(t.Context(), base, true) },
		"rewriting of tags": func(h *handler, index uint32) error {
			return kinds.RewriteTags(t.Context(), h.env, index, &interfaces.Interface{
				Name: base, Link: &interfaces.Interface_Sub{Sub: &interfaces.SubInterface{TagRwOption: interfaces.SubInterface_POP1}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, vpp := onVPP(t, "25.10")
			meta, _ := h.index.Get(base)
			vpp.Sim.DropAt(settingAt(name), true)
			if err := set(h, meta.Index); !errors.Is(err, conn.ErrLost) {
				t.Fatalf("error %v; expected %v", err, conn.ErrLost)
			}
			if noted := h.leftovers.All()[meta.Index]; noted[name] == nil {
				t.Errorf("noted: %v; expected %s", noted, name)
			}
		})
	}
}

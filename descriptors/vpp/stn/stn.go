// Package stn implements VPP's rules for sharing an address with the host ("steal the NIC"):
// TCP and UDP packets for an address that nothing in VPP listens for leave by an interface
// that leads to the host.
//
//	err := stn.Register(s, stn.Options{API: manager, Interfaces: links, Connection: "vpp"})
//
// VPP has one rule per address. A second one silently replaces the interface of the first,
// so a rule claims its address. VPP has no room for an owner: a rule that nobody declares is
// left alone, unless the agent remembers having made it. A rule stays when its interface is
// deleted, and does not need it to go.
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package stn

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	vppstn "go.fd.io/govpp/binapi/stn"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/stn"
	"github.com/keyplane/keyplane/scheduler"
)

// Name is the name of the descriptor, as logs, REST and RetrieveAfter use it.
const Name = "vpp-stn-rules"

// Options configure the descriptor. All fields are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	Connection string
}

type handler struct{ Options }

// Register adds the descriptor to s. The caller registers the interface descriptor first.
func Register(s *scheduler.Scheduler, o Options) error {
	_, err := scheduler.Register(s.OnConnection(o.Connection), handler{o}.descriptor())
	return err
}

func (h handler) descriptor() scheduler.Descriptor[*stn.Rule, struct{}] {
	return scheduler.Descriptor[*stn.Rule, struct{}]{
		Name:  Name,
		Model: models.For[*stn.Rule](),

		Normalize: normalize,
		Validate:  validate,
		Equivalent: func(_ string, old, new *stn.Rule) bool {
			return old.GetInterface() == new.GetInterface() && spelling.Canonical(old.GetIpAddress()) == spelling.Canonical(new.GetIpAddress())
		},
		Dependencies: func(_ string, v *stn.Rule) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetInterface()).Key()}}
		},
		Claims: func(_ string, v *stn.Rule) []scheduler.Claim {
			return []scheduler.Claim{{
				Resource: "vpp-stn/" + spelling.Canonical(v.GetIpAddress()), Field: "ip_address", Value: v.GetIpAddress(),
				Want: "an address without another rule",
			}}
		},

		Create: h.create,
		Delete: h.delete,
		Retrieve: readback.Retriever[*stn.Rule]{
			Read:       h.read,
			ID:         func(v *stn.Rule) string { return v.GetInterface() + " " + spelling.Canonical(v.GetIpAddress()) },
			AsDeclared: func(v, declared *stn.Rule) { v.IpAddress = declared.GetIpAddress() },
		}.Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

// normalize removes a prefix length from the address.
func normalize(_ string, v *stn.Rule) (*stn.Rule, []string) {
	if !spelling.HasLength(v.GetIpAddress()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, spelling.Host("ip_address", &v.IpAddress)
}

func validate(_ string, v *stn.Rule) error {
	var f models.Faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	if a, err := netip.ParseAddr(v.GetIpAddress()); err != nil || a.Zone() != "" {
		f.Add("ip_address", v.GetIpAddress(), `an address, such as "10.0.0.1" or "fd00::1"`)
	}
	return f.Err()
}

// create adds a rule (VPP stn_add_del_rule).
func (h handler) create(ctx context.Context, _ string, v *stn.Rule) (struct{}, error) {
	link, err := iface.Find(h.Interfaces, v.GetInterface())
	if err != nil {
		return struct{}{}, err
	}
	address, err := netip.ParseAddr(v.GetIpAddress())
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, h.set(ctx, address, link.SwIfIndex(), true)
}

// delete removes the rule of an address. VPP looks at the address only.
func (h handler) delete(ctx context.Context, _ string, v *stn.Rule, _ struct{}) error {
	address, err := netip.ParseAddr(v.GetIpAddress())
	if err != nil {
		return err
	}
	return h.end(ctx, address)
}

// end removes the rule of an address, if there is one.
func (h handler) end(ctx context.Context, address netip.Addr) error {
	err := h.set(ctx, address, 0, false)
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	return err
}

func (h handler) set(ctx context.Context, address netip.Addr, at interface_types.InterfaceIndex, add bool) error {
	return h.API.Call(ctx, &vppstn.StnAddDelRule{IPAddress: vppwire.Address(address), SwIfIndex: at, IsAdd: add}, &vppstn.StnAddDelRuleReply{})
}

// read returns all rules. One whose interface was deleted is noted if the read learns: the next interface
// with its index would get the packets.
func (h handler) read(ctx context.Context, learns bool) ([]*stn.Rule, error) {
	all, err := h.rules(ctx)
	if err != nil {
		return nil, err
	}
	names := h.Interfaces.Names()
	out := make([]*stn.Rule, 0, len(all))
	for _, d := range all {
		if name := names[uint32(d.SwIfIndex)]; name != "" {
			out = append(out, &stn.Rule{IpAddress: vppwire.Addr(d.IPAddress).String(), Interface: name})
			continue
		}
		if !learns {
			continue
		}
		if err := h.noteOrphan(ctx, d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rules dumps all rules.
func (h handler) rules(ctx context.Context) ([]vppstn.StnRulesDetails, error) {
	return conn.Dump[vppstn.StnRulesDetails](ctx, h.API, &vppstn.StnRulesDump{})
}

// noteOrphan notes a rule whose interface was deleted. Before it is ended, somebody may give the
// address to another interface, and VPP would remove that rule: it looks at the address only.
func (h handler) noteOrphan(ctx context.Context, d vppstn.StnRulesDetails) error {
	address := vppwire.Addr(d.IPAddress)
	end := func(ctx context.Context, _ interface_types.InterfaceIndex) error {
		now, err := h.rules(ctx)
		if err != nil || !slices.Contains(now, d) {
			return err
		}
		return h.end(ctx, address)
	}
	return h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(d.SwIfIndex), "STN rule "+address.String(), end)
}

package ipsec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	vppipsec "go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/ipsec_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
)

// protect is the action of policies that hold an association.
const protect = ipsec_types.IPSEC_API_SPD_ACTION_PROTECT

// validateDatabase checks a policy database.
func validateDatabase(_ string, v *ipsec.SecurityPolicyDatabase) error {
	var f faults
	for i := range v.GetPolicyEntries() { //nolint:staticcheck // the field is deprecated, and refused
		f.Add(fmt.Sprintf("policy_entries[%d]", i), nil,
			"no entry: declare it as a value of its own, a SecurityPolicy (vppConfig.ipsecSps) with spdIndex %d and the same fields", v.GetIndex())
	}
	seen := map[string]int{}
	for i, one := range v.GetInterfaces() {
		field := fmt.Sprintf("interfaces[%d].name", i)
		first, twice := seen[one.GetName()]
		switch {
		case one.GetName() == "":
			f.Add(field, "", "the name of an interface")
		case twice:
			f.Add(field, one.GetName(), "each interface once; interfaces[%d] has it already", first)
		default:
			seen[one.GetName()] = i
		}
	}
	return f.Err()
}

// interfacesOf returns the interfaces of a database as derived values.
func interfacesOf(_ string, v *ipsec.SecurityPolicyDatabase) (out []scheduler.KeyValue) {
	for _, one := range v.GetInterfaces() {
		out = append(out, scheduler.KeyValue{Key: keys.SPDMembers.Key(v.GetIndex(), one.GetName()), Value: one})
	}
	return out
}

// claimInterfaces claims the interfaces: VPP has one database per interface.
func claimInterfaces(_ string, v *ipsec.SecurityPolicyDatabase) (out []scheduler.Claim) {
	for i, one := range v.GetInterfaces() {
		out = append(out, scheduler.Claim{
			Resource: "vpp-spd/" + one.GetName(), Field: fmt.Sprintf("interfaces[%d].name", i), Value: one.GetName(),
			Want: "an interface without another policy database",
		})
	}
	return out
}

// createDatabase makes a database (VPP ipsec_spd_add_del). One with its number is taken over.
func (h *handler) createDatabase(ctx context.Context, _ string, v *ipsec.SecurityPolicyDatabase) (struct{}, error) {
	err := h.API.Call(ctx, &vppipsec.IpsecSpdAddDel{IsAdd: true, SpdID: v.GetIndex()}, &vppipsec.IpsecSpdAddDelReply{})
	if errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
		err = nil
	}
	return struct{}{}, err
}

// deleteDatabase removes the policies of others first: without their database, VPP would never
// free the associations that they hold.
func (h *handler) deleteDatabase(ctx context.Context, _ string, v *ipsec.SecurityPolicyDatabase, _ struct{}) error {
	steps, err := h.policySteps(ctx, v.GetIndex())
	if err != nil {
		return err
	}
	if err := h.API.Batch(ctx, steps...); err != nil {
		return err
	}
	err = h.API.Call(ctx, &vppipsec.IpsecSpdAddDel{SpdID: v.GetIndex()}, &vppipsec.IpsecSpdAddDelReply{})
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	return err
}

// setEntry returns the request that adds or removes a policy. A VPP before 22.10 has only the
// older message, in which protocol 0 is any.
func (h *handler) setEntry(e ipsec_types.IpsecSpdEntry, add bool) (*conn.Step, error) {
	variant, err := h.API.First(&vppipsec.IpsecSpdEntryAddDelV2{}, &vppipsec.IpsecSpdEntryAddDel{})
	if err != nil {
		return nil, err
	}
	if _, is := variant.(*vppipsec.IpsecSpdEntryAddDelV2); is {
		return conn.Ask(&vppipsec.IpsecSpdEntryAddDelV2{IsAdd: add, Entry: ipsec_types.IpsecSpdEntryV2(e)}, &vppipsec.IpsecSpdEntryAddDelV2Reply{}), nil
	}
	if e.Protocol == anyProtocol {
		e.Protocol = 0
	}
	return conn.Ask(&vppipsec.IpsecSpdEntryAddDel{IsAdd: add, Entry: e}, &vppipsec.IpsecSpdEntryAddDelReply{}), nil
}

// readEntries returns the policies of all databases.
func (h *handler) readEntries(ctx context.Context) ([]ipsec_types.IpsecSpdEntry, error) {
	databases, err := conn.Dump[vppipsec.IpsecSpdsDetails](ctx, h.API, &vppipsec.IpsecSpdsDump{})
	if err != nil {
		return nil, err
	}
	var out []ipsec_types.IpsecSpdEntry
	for _, d := range databases {
		if d.Npolicies == 0 {
			continue
		}
		entries, err := conn.Dump[vppipsec.IpsecSpdDetails](ctx, h.API, &vppipsec.IpsecSpdDump{SpdID: d.SpdID, SaID: all})
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			out = append(out, e.Entry)
		}
	}
	return out, nil
}

// leftover is the name of an interface's database among the state that outlives the interface.
const leftover = "IPsec policy database"

// bind gives an interface a database (VPP ipsec_interface_add_del_spd). One that it has already is
// the result of a request whose answer was lost, that of a deleted interface with its index, or
// somebody else's. Only a new one is sure to be in effect, and alone.
func (h *handler) bind(ctx context.Context, key string) error {
	number, name, _ := keys.SPDMembers.Parse(key)
	link, err := iface.Find(h.Interfaces, name)
	if err != nil {
		return err
	}
	// VPP keeps the binding of a deleted interface, for the next one with its index.
	h.Interfaces.Leftovers().Note(link.Index, name, leftover, h.release(number))
	err = h.setBinding(ctx, link.SwIfIndex(), number, true)
	if !errors.Is(err, api.SYSCALL_ERROR_2) {
		return err
	}
	if err := h.releaseAny(ctx, link.SwIfIndex()); err != nil {
		return err
	}
	return h.setBinding(ctx, link.SwIfIndex(), number, true)
}

// releaseAny takes away the database that an interface has, whichever it is. With the number of
// another one, VPP would forget the binding, and go on to look at the policies of that database for
// incoming packets (VPP ipsec_spd.c, ipsec_set_interface_spd, and config.c, vnet_config_del_feature).
func (h *handler) releaseAny(ctx context.Context, at interface_types.InterfaceIndex) error {
	bound, err := h.readBindings(ctx)
	for number, interfaces := range bound {
		if slices.Contains(interfaces, at) {
			return h.release(number)(ctx, at)
		}
	}
	return err
}

// unbind takes the database of an interface away. If the interface is gone, the registry of
// leftovers takes it away from the next one with its index.
func (h *handler) unbind(ctx context.Context, key string) error {
	number, name, _ := keys.SPDMembers.Parse(key)
	link, ok := h.Interfaces.Get(name)
	if !ok {
		return nil
	}
	err := h.release(number)(ctx, link.SwIfIndex())
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil
	}
	if err == nil {
		h.Interfaces.Leftovers().Ended(link.Index, leftover)
	}
	return err
}

// release returns the request that takes a database away from an interface. Without the
// database, no interface has it.
func (h *handler) release(number uint32) func(context.Context, interface_types.InterfaceIndex) error {
	return func(ctx context.Context, at interface_types.InterfaceIndex) error {
		err := h.setBinding(ctx, at, number, false)
		if errors.Is(err, api.SYSCALL_ERROR_1) {
			return nil
		}
		return err
	}
}

// setBinding adds or removes a binding. VPP answers SYSCALL_ERROR_1 for a missing database, and
// SYSCALL_ERROR_2 for an interface that has one.
func (h *handler) setBinding(ctx context.Context, at interface_types.InterfaceIndex, number uint32, add bool) error {
	return h.API.Call(ctx, &vppipsec.IpsecInterfaceAddDelSpd{IsAdd: add, SwIfIndex: at, SpdID: number}, &vppipsec.IpsecInterfaceAddDelSpdReply{})
}

// readDatabases returns all databases with their interfaces. A binding of a deleted interface is
// noted if the read learns: VPP would refuse to bind the next interface with its index.
func (h *handler) readDatabases(ctx context.Context, learns bool) ([]*ipsec.SecurityPolicyDatabase, error) {
	databases, err := conn.Dump[vppipsec.IpsecSpdsDetails](ctx, h.API, &vppipsec.IpsecSpdsDump{})
	if err != nil || len(databases) == 0 {
		return nil, err
	}
	bound, err := h.readBindings(ctx)
	if err != nil {
		return nil, err
	}
	names := h.Interfaces.Names()
	out := make([]*ipsec.SecurityPolicyDatabase, 0, len(databases))
	for _, d := range databases {
		v := &ipsec.SecurityPolicyDatabase{Index: d.SpdID}
		for _, at := range bound[d.SpdID] {
			if name := names[uint32(at)]; name != "" {
				v.Interfaces = append(v.Interfaces, &ipsec.SecurityPolicyDatabase_Interface{Name: name})
				continue
			}
			if !learns {
				continue
			}
			if err := h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(at), leftover, h.release(d.SpdID)); err != nil {
				return nil, err
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// readBindings returns the interfaces of each database by its number. VPP's message has another
// number of the database, that of its slot in memory, which no message translates. Its command
// line has the right one, and lists the same interfaces in the same order (VPP ipsec_cli.c,
// ipsec_spd_bindings_show_all). Both are asked for at once. If they still differ, somebody
// changed a binding between them, and they are read again.
func (h *handler) readBindings(ctx context.Context) (map[uint32][]interface_types.InterfaceIndex, error) {
	const attempts = 3
	for range attempts {
		var bound []vppipsec.IpsecSpdInterfaceDetails
		var page vlib.CliInbandReply
		err := h.API.Batch(ctx,
			conn.List(&vppipsec.IpsecSpdInterfaceDump{}, &bound),
			conn.Ask(&vlib.CliInband{Cmd: "show ipsec spd bindings"}, &page),
		)
		if err != nil {
			return nil, err
		}
		numbers := bindingsIn(page.Reply)
		if len(numbers) != len(bound) {
			continue
		}
		out := map[uint32][]interface_types.InterfaceIndex{}
		for i, d := range bound {
			out[numbers[i]] = append(out[numbers[i]], d.SwIfIndex)
		}
		return out, nil
	}
	return nil, fmt.Errorf("interfaces of policy databases: VPP's dump and its command line differed %d times", attempts)
}

// bindingsIn returns the numbers of databases on the page, in its order. VPP prints them as signed
// numbers of 32 bits: "  7 -> loop0".
func bindingsIn(page string) (numbers []uint32) {
	for line := range strings.Lines(page) {
		text, _, ok := strings.Cut(line, " -> ")
		if number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); ok && err == nil {
			numbers = append(numbers, uint32(number))
		}
	}
	return numbers
}

package ipsec

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	vppipsec "go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/ipsec_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	// anyProtocol is VPP's number for all protocols; the model has 0.
	anyProtocol = 255
	// lastPort ends the range of all ports.
	lastPort = 65535
)

// addressFields returns the addresses of a policy by the names of their fields, in the order of ranges.
func addressFields(v *ipsec.SecurityPolicy) (names [4]string, texts [4]*string) {
	return [4]string{"remote_addr_start", "remote_addr_stop", "local_addr_start", "local_addr_stop"},
		[4]*string{&v.RemoteAddrStart, &v.RemoteAddrStop, &v.LocalAddrStart, &v.LocalAddrStop}
}

// normalizePolicy removes prefix lengths from addresses.
func normalizePolicy(_ string, v *ipsec.SecurityPolicy) (*ipsec.SecurityPolicy, []string) {
	_, texts := addressFields(v)
	if !slices.ContainsFunc(texts[:], func(text *string) bool { return spelling.HasLength(*text) }) {
		return v, nil
	}
	v = proto.CloneOf(v)
	names, texts := addressFields(v)
	var warnings []string
	for i, name := range names {
		warnings = append(warnings, spelling.Host(name, texts[i])...)
	}
	return v, warnings
}

// validatePolicy checks a policy. An invalid address hides errors of its range, which cannot be
// compared then.
func validatePolicy(_ string, v *ipsec.SecurityPolicy) error {
	var f faults
	names, texts := addressFields(v)
	valid := true
	for i, name := range names {
		if *texts[i] != "" {
			_, ok := f.address(name, *texts[i])
			valid = valid && ok
		}
	}
	if valid {
		f.ranges(v)
	}
	f.portRange("remote_port", v.GetRemotePortStart(), v.GetRemotePortStop())
	f.portRange("local_port", v.GetLocalPortStart(), v.GetLocalPortStop())
	switch action := v.GetAction(); {
	case action == ipsec.SecurityPolicy_RESOLVE:
		f.Add("action", action.String(), "BYPASS, DISCARD or PROTECT: VPP resolves no associations")
	case ipsec.SecurityPolicy_Action_name[int32(action)] == "":
		f.Add("action", int32(action), "BYPASS, DISCARD or PROTECT")
	}
	return f.Err()
}

// ranges checks valid addresses: one IP version, and no range that ends before it starts.
func (f *faults) ranges(v *ipsec.SecurityPolicy) {
	names, texts := addressFields(v)
	all, first, given := addressesOf(v), "", netip.Addr{} // the first field that has an address
	for i, name := range names {
		switch {
		case *texts[i] == "":
		case first == "":
			first, given = name, all[i]
		case all[i].Is6() != given.Is6():
			f.Add(name, *texts[i], "an address of the IP version of %s, %s", first, given)
			return
		}
	}
	if all[1].Less(all[0]) {
		f.Add(names[1], *texts[1], "at least %s, %s", names[0], all[0])
	}
	if all[3].Less(all[2]) {
		f.Add(names[3], *texts[3], "at least %s, %s", names[2], all[2])
	}
}

// portRange checks a range of ports.
func (f *faults) portRange(field string, start, stop uint32) {
	if start > stop {
		f.Add(field+"_stop", stop, "at least %s_start, %d", field, start)
	}
}

// addressesOf returns the addresses of a policy in the order of addressFields. A missing one
// is the first or last one of all, of the IP version of the others; without others, of IPv4.
func addressesOf(v *ipsec.SecurityPolicy) (out [4]netip.Addr) {
	_, texts := addressFields(v)
	v6 := false
	for i, text := range texts {
		if a, err := netip.ParseAddr(*text); err == nil {
			out[i] = a
			v6 = v6 || a.Is6()
		}
	}
	ends := [2]netip.Addr{netip.IPv4Unspecified(), netip.AddrFrom4([4]byte{255, 255, 255, 255})}
	if v6 {
		ends = [2]netip.Addr{netip.IPv6Unspecified(), netip.AddrFrom16([16]byte(slices.Repeat([]byte{255}, 16)))}
	}
	for i := range out {
		if !out[i].IsValid() {
			out[i] = ends[i%2]
		}
	}
	return out
}

// entryOf returns a policy in the form of VPP's messages, with defaults filled in. Two policies with
// equal entries are the same to VPP.
func entryOf(v *ipsec.SecurityPolicy) ipsec_types.IpsecSpdEntry {
	addresses := addressesOf(v)
	e := ipsec_types.IpsecSpdEntry{
		SpdID: v.GetSpdIndex(), SaID: v.GetSaIndex(), Priority: v.GetPriority(), IsOutbound: v.GetIsOutbound(),
		Policy:             ipsec_types.IpsecSpdAction(v.GetAction()), // VPP and the model number actions in the same way
		Protocol:           uint8(v.GetProtocol()),
		RemoteAddressStart: vppwire.Address(addresses[0]), RemoteAddressStop: vppwire.Address(addresses[1]),
		LocalAddressStart: vppwire.Address(addresses[2]), LocalAddressStop: vppwire.Address(addresses[3]),
		RemotePortStart: uint16(v.GetRemotePortStart()), RemotePortStop: uint16(v.GetRemotePortStop()),
		LocalPortStart: uint16(v.GetLocalPortStart()), LocalPortStop: uint16(v.GetLocalPortStop()),
	}
	return filled(e)
}

// filled returns an entry with one notation for "any": the ports 0 to 65535, and protocol 255.
func filled(e ipsec_types.IpsecSpdEntry) ipsec_types.IpsecSpdEntry {
	if e.RemotePortStart == 0 && e.RemotePortStop == 0 {
		e.RemotePortStop = lastPort
	}
	if e.LocalPortStart == 0 && e.LocalPortStop == 0 {
		e.LocalPortStop = lastPort
	}
	if e.Protocol == 0 {
		e.Protocol = anyProtocol
	}
	return e
}

// shownAs returns an entry as VPP's dumps have it. They have no IP version: an IPv6 address below
// ::1:0:0 is shown as IPv4 (VPP ipsec_api.c, IP46_TYPE_ANY).
func shownAs(e ipsec_types.IpsecSpdEntry) ipsec_types.IpsecSpdEntry {
	for _, a := range []*ip_types.Address{&e.RemoteAddressStart, &e.RemoteAddressStop, &e.LocalAddressStart, &e.LocalAddressStop} {
		if un := a.Un.GetIP6(); a.Af == ip_types.ADDRESS_IP6 && [12]byte(un[:12]) == [12]byte{} {
			*a = vppwire.Address(netip.AddrFrom4([4]byte(un[12:])))
		}
	}
	return filled(e)
}

// A selector identifies a policy as its key does: number of the database and association, direction
// and addresses, as VPP shows them.
type selector struct {
	database, association uint32
	outbound              bool
	addresses             [4]ip_types.Address
}

// selectorOf returns the selector of an entry.
func selectorOf(e ipsec_types.IpsecSpdEntry) selector {
	e = shownAs(e)
	return selector{e.SpdID, e.SaID, e.IsOutbound, [4]ip_types.Address{e.RemoteAddressStart, e.RemoteAddressStop, e.LocalAddressStart, e.LocalAddressStop}}
}

// policyDependencies requires the database, and the association of action PROTECT.
func policyDependencies(_ string, v *ipsec.SecurityPolicy) []scheduler.Dependency {
	out := []scheduler.Dependency{{Label: "spd-exists", Key: keys.IPsecSPD(v.GetSpdIndex())}}
	if v.GetAction() == ipsec.SecurityPolicy_PROTECT {
		out = append(out, scheduler.Dependency{Label: "sa-exists", Key: keys.IPsecSA(v.GetSaIndex())})
	}
	return out
}

// claimSelectors claims two things. Other spellings of the same addresses have other keys, but no
// difference in VPP. And VPP compares only the upper half of the last remote IPv6 address when it
// deletes a policy, so it could delete the other one.
func claimSelectors(_ string, v *ipsec.SecurityPolicy) []scheduler.Claim {
	e := entryOf(v)
	out := []scheduler.Claim{{
		Resource: fmt.Sprintf("vpp-ipsec-sp/%+v", selectorOf(e)), Field: "remote_addr_start", Value: v.GetRemoteAddrStart(),
		Want: "a policy whose database, association, direction and addresses are not those of another one",
	}}
	if e.RemoteAddressStart.Af == ip_types.ADDRESS_IP6 {
		last := e.RemoteAddressStop.Un.GetIP6()
		clear(last[8:])
		e.RemoteAddressStop.Un.SetIP6(last)
		out = append(out, scheduler.Claim{
			Resource: fmt.Sprintf("vpp-ipsec-sp-deletion/%+v", e), Field: "remote_addr_stop", Value: v.GetRemoteAddrStop(),
			Want: "a policy that differs from others not only in the last 64 bits of this address, which VPP ignores when it deletes a policy",
		})
	}
	return out
}

// createPolicy adds a policy. VPP would add it once more after an earlier request whose answer was
// lost, so then VPP is asked first.
func (h *handler) createPolicy(ctx context.Context, _ string, v *ipsec.SecurityPolicy) (struct{}, error) {
	created := h.createPolicies(ctx, []scheduler.Desired[*ipsec.SecurityPolicy]{{Value: v}})
	return struct{}{}, created[0].Err
}

// createPolicies is createPolicy for many values, without waiting for each reply.
func (h *handler) createPolicies(ctx context.Context, values []scheduler.Desired[*ipsec.SecurityPolicy]) []scheduler.Created[struct{}] {
	out, steps := make([]scheduler.Created[struct{}], len(values)), make([]*conn.Step, len(values))
	exists, err := h.policiesAgain(ctx, values)
	for i, w := range values {
		switch {
		case err != nil:
			out[i].Err = err
		case exists[entryOf(w.Value)]:
		default:
			steps[i], out[i].Err = h.setEntry(entryOf(w.Value), true)
		}
	}
	_ = h.API.Batch(ctx, slices.DeleteFunc(slices.Clone(steps), func(s *conn.Step) bool { return s == nil })...) // each step has its own
	for i, w := range values {
		step, v := steps[i], w.Value
		if step == nil {
			continue
		}
		out[i].Err = step.Err
		if errors.Is(step.Err, api.SYSCALL_ERROR_1) {
			out[i].Err = fmt.Errorf("policy database %d, or %s for PROTECT: %w", v.GetSpdIndex(), nameOf(v.GetSaIndex()), iface.ErrNotFound)
		}
	}
	return out
}

// policiesAgain notes the policies as requested. If VPP may have some of them already, it returns
// those that it has. Mostly there are none, and VPP is not asked.
func (h *handler) policiesAgain(ctx context.Context, values []scheduler.Desired[*ipsec.SecurityPolicy]) (map[ipsec_types.IpsecSpdEntry]bool, error) {
	again := false
	h.mu.Lock()
	for _, w := range values {
		e := shownAs(entryOf(w.Value))
		again = again || h.existing[e]
		h.existing[e] = true
	}
	h.mu.Unlock()
	if !again {
		return nil, nil
	}
	existing, err := h.readEntries(ctx)
	shown := make(map[ipsec_types.IpsecSpdEntry]bool, len(existing))
	for _, e := range existing {
		shown[filled(e)] = true
	}
	out := map[ipsec_types.IpsecSpdEntry]bool{}
	for _, w := range values {
		e := entryOf(w.Value)
		out[e] = shown[shownAs(e)]
	}
	return out, err
}

// deletePolicy removes a policy. VPP answers OK if there is none. Without the database, there is none.
func (h *handler) deletePolicy(ctx context.Context, _ string, v *ipsec.SecurityPolicy, _ struct{}) error {
	e := entryOf(v)
	step, err := h.setEntry(e, false)
	if err != nil {
		return err
	}
	err = h.API.Call(ctx, step.Request, step.Reply)
	if err != nil && !errors.Is(err, api.SYSCALL_ERROR_1) {
		return err
	}
	h.mu.Lock()
	delete(h.existing, shownAs(e))
	h.mu.Unlock()
	return nil
}

// readPolicies returns the policies of all databases. Several with the selector of one key come from
// somebody else; the first is reported, which VPP looks at first.
func (h *handler) readPolicies(ctx context.Context, learns bool) ([]*ipsec.SecurityPolicy, error) {
	entries, err := h.readEntries(ctx)
	if err != nil {
		return nil, err
	}
	seen, existing := map[selector]bool{}, make(map[ipsec_types.IpsecSpdEntry]bool, len(entries))
	var out []*ipsec.SecurityPolicy
	for _, e := range entries {
		existing[filled(e)] = true
		if s := selectorOf(e); !seen[s] {
			seen[s] = true
			out = append(out, policyFrom(e))
		}
	}
	if learns {
		h.mu.Lock()
		h.existing = existing
		h.mu.Unlock()
	}
	return out, nil
}

// policyFrom is the inverse of entryOf. If one address is of IPv6, all are.
func policyFrom(e ipsec_types.IpsecSpdEntry) *ipsec.SecurityPolicy {
	addresses := [4]ip_types.Address{e.RemoteAddressStart, e.RemoteAddressStop, e.LocalAddressStart, e.LocalAddressStop}
	isV6 := slices.ContainsFunc(addresses[:], func(a ip_types.Address) bool { return a.Af == ip_types.ADDRESS_IP6 })
	v := &ipsec.SecurityPolicy{
		SpdIndex: e.SpdID, SaIndex: e.SaID, Priority: e.Priority, IsOutbound: e.IsOutbound, Action: ipsec.SecurityPolicy_Action(e.Policy), Protocol: uint32(e.Protocol),
		RemotePortStart: uint32(e.RemotePortStart), RemotePortStop: uint32(e.RemotePortStop), LocalPortStart: uint32(e.LocalPortStart), LocalPortStop: uint32(e.LocalPortStop),
	}
	if e.Protocol == anyProtocol {
		v.Protocol = 0
	}
	_, texts := addressFields(v)
	for i, a := range addresses {
		addr := vppwire.Addr(a)
		if isV6 && addr.Is4() {
			b := addr.As4()
			addr = netip.AddrFrom16([16]byte(append(make([]byte, 12), b[:]...)))
		}
		*texts[i] = addr.String()
	}
	return v
}

// asDeclared gives v the declared notation of addresses. Otherwise, another spelling or an
// omitted address would look like drift.
func asDeclared(v, declared *ipsec.SecurityPolicy) {
	_, into := addressFields(v)
	_, from := addressFields(declared)
	for i := range into {
		*into[i] = *from[i]
	}
}

// policyID returns the selector of a value as text. It is the same for the declared value and
// for the one that VPP shows.
func policyID(v *ipsec.SecurityPolicy) string { return fmt.Sprint(selectorOf(entryOf(v))) }

// policySteps removes the policies of a database that VPP shows. They include policies of
// others, and the caller sends them before it deletes the database.
func (h *handler) policySteps(ctx context.Context, database uint32) (steps []*conn.Step, err error) {
	entries, err := conn.Dump[vppipsec.IpsecSpdDetails](ctx, h.API, &vppipsec.IpsecSpdDump{SpdID: database, SaID: all})
	if err != nil {
		return nil, err
	}
	for _, d := range entries {
		step, err := h.setEntry(entryOf(policyFrom(d.Entry)), false)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

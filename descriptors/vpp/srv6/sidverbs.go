package srv6

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/sr"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
)

// The return values of sr_localsid_add_del (VPP sr_localsid.c, sr_cli_localsid).
const (
	sidExists  = -1
	noSID      = -2 // of a deletion
	noTable    = -3
	routeThere = -4
)

// errExists reports that VPP has a SID of this address.
var errExists = errors.New("VPP has a local SID of this address already")

// noVLAN is the VLAN of an End.DX2 without one.
const noVLAN = ^uint32(0)

// createSID makes a SID. One that VPP has already is replaced: an earlier attempt or somebody
// else made it after the last Retrieve. Between both requests, VPP has no SID of this address.
func (h *handler) createSID(ctx context.Context, _ string, v *srv6.LocalSID) (struct{}, error) {
	err := h.addSID(ctx, v)
	if errors.Is(err, errExists) {
		if err := h.removeSID(ctx, unicast(v.GetSid())); err != nil {
			return struct{}{}, err
		}
		err = h.addSID(ctx, v)
	}
	return struct{}{}, err
}

// addSID makes a SID that VPP does not have. It returns errExists if VPP has the address, and
// iface.ErrNotFound for a missing interface or table.
func (h *handler) addSID(ctx context.Context, v *srv6.LocalSID) error {
	f := functionOf(v)
	if f.behavior == behaviorAD {
		return h.addProxy(ctx, v, f)
	}
	q := &sr.SrLocalsidAddDel{
		Localsid: unicast(v.GetSid()).As16(), FibTable: v.GetInstallationVrfId(),
		Behavior: f.behavior, EndPsp: f.psp, SwIfIndex: interface_types.InterfaceIndex(f.table), VlanIndex: noVLAN,
	}
	if f.out != "" {
		link, err := iface.Find(h.Interfaces, f.out)
		if err != nil {
			return err
		}
		q.SwIfIndex = link.SwIfIndex()
	}
	if f.next.IsValid() {
		q.NhAddr = vppwire.Address(f.next)
	}
	if err := h.hasLookupTable(ctx, f); err != nil {
		return err
	}
	err := h.API.Call(ctx, q, &sr.SrLocalsidAddDelReply{})
	switch retval(err) {
	case sidExists:
		return errExists
	case noTable:
		return fmt.Errorf("IPv6 table %d: %w", q.FibTable, iface.ErrNotFound)
	case routeThere:
		return fmt.Errorf("IPv6 table %d has a route or an interface's address %s; expected an address without one", q.FibTable, q.Localsid)
	}
	return err
}

// hasLookupTable refuses a function whose table is missing: VPP accepts it, and dies at the next
// dump of local SIDs.
func (h *handler) hasLookupTable(ctx context.Context, f function) error {
	looksUp, ipv6 := f.looksUp()
	if !looksUp {
		return nil
	}
	has, err := h.hasTable(ctx, f.table, ipv6)
	if err == nil && !has {
		err = fmt.Errorf("table %d, in which packets are looked up: %w", f.table, iface.ErrNotFound)
	}
	return err
}

// addProxy makes a SID with End.AD. No message does that, so the command line does. If it cannot
// read the function, VPP makes End instead, so the result is read back.
func (h *handler) addProxy(ctx context.Context, v *srv6.LocalSID, f function) error {
	if _, err := h.API.First(&sr.SrLocalsidsDump{}); err != nil {
		return err // it could not be read back
	}
	behaviors, err := h.page(ctx, "show sr localsids behaviors")
	if err != nil {
		return err
	}
	if !strings.Contains(behaviors, "\tEnd.AD\t") {
		return conn.Unimplemented("VPP has not loaded srv6ad_plugin.so, which End.AD needs")
	}
	out, okOut := h.Interfaces.Get(f.out)
	in, okIn := h.Interfaces.Get(f.in)
	switch {
	case !okOut:
		return fmt.Errorf("interface %s: %w", f.out, iface.ErrNotFound)
	case !okIn:
		return fmt.Errorf("interface %s: %w", f.in, iface.ErrNotFound)
	}
	next := ""
	if f.next.IsValid() {
		next = " nh " + f.next.String()
	} else if err := h.needFrames(ctx, "end_function_ad.incoming_interface", f.in, in); err != nil {
		return err
	}
	address := unicast(v.GetSid())
	said, err := h.run(ctx, fmt.Sprintf("sr localsid prefix %s/128 fib-table %d behavior end.ad%s oif %s iif %s", address, v.GetInstallationVrfId(), next, out.InternalName, in.InternalName))
	if err != nil {
		return err
	}
	if strings.Contains(said, "already exists") {
		return errExists
	}
	all, err := h.readSIDs(ctx, true)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(one *srv6.LocalSID) bool { return one.GetSid() == address.String() })
	switch {
	case i >= 0 && functionOf(all[i]) == f:
		return nil
	// Without the removal, End would process packets that are meant for the service.
	case i >= 0:
		err = h.removeSID(ctx, address)
	}
	return errors.Join(fmt.Errorf("VPP has not made End.AD of %s with the interfaces %s and %s: %q", address, f.out, f.in, strings.TrimSpace(said)), err)
}

// deleteSID deletes a SID. A SID that is gone already is no error.
func (h *handler) deleteSID(ctx context.Context, _ string, v *srv6.LocalSID, _ struct{}) error {
	return h.removeSID(ctx, unicast(v.GetSid()))
}

// removeSID deletes the SID of an address, whatever it does, if there is one. VPP is asked for
// its table first: it dies if it is given one that does not exist.
func (h *handler) removeSID(ctx context.Context, address netip.Addr) error {
	for range 2 { // the command line can have made a second one of the address
		all, err := conn.Dump[sr.SrLocalsidsDetails](ctx, h.API, &sr.SrLocalsidsDump{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(d sr.SrLocalsidsDetails) bool { return d.Addr == address.As16() })
		if i < 0 {
			return nil
		}
		table := all[i].FibTable
		has, err := h.hasTable(ctx, table, true)
		if err != nil {
			return err
		}
		if !has {
			table = 0 // VPP deletes the SID. It finds no route of it there, which does no harm.
		}
		err = h.API.Call(ctx, &sr.SrLocalsidAddDel{IsDel: true, Localsid: address.As16(), FibTable: table}, &sr.SrLocalsidAddDelReply{})
		if retval(err) == noSID {
			// Somebody made it by its address alone, on the command line. Only that can delete it.
			_, err = h.run(ctx, fmt.Sprintf("sr localsid del address %s fib-table %d", address, table))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

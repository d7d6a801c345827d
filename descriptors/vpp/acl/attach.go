package acl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.fd.io/govpp/api"
	vppacl "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
)

// maxLists is the maximum number of IP lists of one interface, in both directions together
// (VPP acl.api, acl_interface_set_acl_list, u8 count).
const maxLists = 255

// A slot is a place in the vector of an interface: the list's name and the direction.
type slot struct {
	list   string
	egress bool
}

// vectors are the IP lists of one interface. VPP replaces both directions as a whole, so
// requests for one interface take turns. A request sends all changes that were made while it
// waited; those that waited behind it then find theirs sent already. So a start with 200 lists
// on an interface needs a handful of messages. The lists of others are read in each turn, since
// other programs change them at any time.
type vectors struct {
	turn chan struct{} // holds one token; its holder may send

	mu      sync.Mutex      // guards the fields below
	ours    map[slot]uint32 // numbers of this agent's lists, as they are to be
	told    map[slot]uint32 // the same as VPP has them
	changes uint64          // of ours so far
	sent    uint64          // the value of changes that VPP has been told of
}

// newVectors returns the vectors of an interface without lists of this agent.
func newVectors() *vectors {
	v := &vectors{turn: make(chan struct{}, 1), ours: map[slot]uint32{}, told: map[slot]uint32{}}
	v.turn <- struct{}{}
	return v
}

// attachments holds the vectors of each interface by sw_if_index.
type attachments struct {
	mu  sync.Mutex // guards all
	all map[interface_types.InterfaceIndex]*vectors
}

// at returns the vectors of an interface.
func (a *attachments) at(index interface_types.InterfaceIndex) *vectors {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.all[index]
	if one == nil {
		one = newVectors()
		if a.all == nil {
			a.all = map[interface_types.InterfaceIndex]*vectors{}
		}
		a.all[index] = one
	}
	return one
}

// replace sets all vectors to those that were read from VPP.
func (a *attachments) replace(all map[interface_types.InterfaceIndex]*vectors) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = all
}

// change enters a list, or removes it for none. It returns the number of the change, and the
// list that had the slot.
func (v *vectors) change(s slot, list uint32) (number uint64, old uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, had := v.ours[s]
	if !had {
		old = none
	}
	if list == none {
		delete(v.ours, s)
	} else {
		v.ours[s] = list
	}
	v.changes++
	return v.changes, old
}

// wanted returns our lists, and the number of their last change.
func (v *vectors) wanted() (ours map[slot]uint32, change uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.ours), v.changes
}

// merge returns the vectors for VPP: the lists of others that it has, and ours by name.
func (v *vectors) merge(has []vppacl.ACLInterfaceListDetails, ours map[slot]uint32) (in, out []uint32) {
	add := func(list uint32, egress bool) {
		if egress {
			out = append(out, list)
		} else {
			in = append(in, list)
		}
	}
	for _, d := range has {
		for i, list := range d.Acls {
			if egress := i >= int(d.NInput); !v.isOurs(list, egress) {
				add(list, egress)
			}
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(ours), func(a, b slot) int { return cmp.Compare(a.list, b.list) }) {
		add(ours[s], s.egress)
	}
	return in, out
}

// isOurs reports whether a list is this agent's, to be or still in VPP.
func (v *vectors) isOurs(list uint32, egress bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, known := range []map[slot]uint32{v.ours, v.told} {
		for s, one := range known {
			if one == list && s.egress == egress {
				return true
			}
		}
	}
	return false
}

// isSent reports whether VPP has been told of a change.
func (v *vectors) isSent(change uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sent >= change
}

// attach applies a list to an interface.
func (h *handler) attach(ctx context.Context, key string, _ *emptypb.Empty) (struct{}, error) {
	at, _ := keys.ParseACLInterface(key)
	list, ok := h.lists.Get(at.ACL)
	if !ok {
		return struct{}{}, fmt.Errorf("access list %s: %w", at.ACL, iface.ErrNotFound)
	}
	link, err := iface.Find(h.Interfaces, at.Interface)
	if err != nil {
		return struct{}{}, err
	}
	if list.MACIP {
		return struct{}{}, h.setMACIP(ctx, link.SwIfIndex(), list.Index, true)
	}
	return struct{}{}, h.change(ctx, link.SwIfIndex(), slot{at.ACL, at.Egress}, list.Index)
}

// detach takes a list off an interface. A deleted interface has none.
func (h *handler) detach(ctx context.Context, key string, _ *emptypb.Empty, _ struct{}) error {
	at, _ := keys.ParseACLInterface(key)
	link, ok := h.Interfaces.Get(at.Interface)
	if !ok {
		return nil
	}
	var err error
	if list, _ := h.lists.Get(at.ACL); list.MACIP {
		err = h.setMACIP(ctx, link.SwIfIndex(), list.Index, false)
		if errors.Is(err, api.NO_SUCH_ENTRY) {
			return nil // the interface has none
		}
	} else {
		err = h.change(ctx, link.SwIfIndex(), slot{at.ACL, at.Egress}, none)
	}
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil
	}
	return err
}

// change changes one slot and waits until VPP has been told. If VPP refuses, the slot gets its
// old content back, so that the next request does not fail for the same reason.
func (h *handler) change(ctx context.Context, index interface_types.InterfaceIndex, s slot, list uint32) error {
	at := h.attached.at(index)
	number, old := at.change(s, list)
	err := h.send(ctx, index, at, number)
	if err == nil && !at.isTold(s, list) {
		err = fmt.Errorf("access list %s (number %d): %w", s.list, list, iface.ErrNotFound)
	}
	if err != nil {
		at.change(s, old)
	}
	return err
}

// isTold reports whether VPP has been told of the content of a slot.
func (v *vectors) isTold(s slot, list uint32) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	told, ok := v.told[s]
	return told == list || !ok && list == none
}

// begin waits for the turn of a request about the interface. The caller calls end after it.
func (v *vectors) begin(ctx context.Context) (end func(), err error) {
	select {
	case <-v.turn:
		return func() { v.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send tells VPP of a change, unless another request has done so meanwhile.
func (h *handler) send(ctx context.Context, index interface_types.InterfaceIndex, at *vectors, change uint64) error {
	end, err := at.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if at.isSent(change) {
		return nil
	}
	ours, changes := at.wanted()
	err = h.setLists(ctx, index, at, ours)
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		// Somebody else has removed lists, ours or theirs. VPP then refuses the whole vector.
		exists, errRead := h.existingLists(ctx)
		if errRead != nil {
			return errRead
		}
		maps.DeleteFunc(ours, func(_ slot, list uint32) bool { return !exists[list] })
		err = h.setLists(ctx, index, at, ours)
	}
	if err != nil {
		return err
	}
	at.has(ours, changes)
	return nil
}

// setLists reads the lists of others on an interface, and sets them with ours.
func (h *handler) setLists(ctx context.Context, index interface_types.InterfaceIndex, at *vectors, ours map[slot]uint32) error {
	has, err := h.applied(ctx, index)
	if err != nil {
		return err
	}
	in, out := at.merge(has, ours)
	return h.apply(ctx, index, in, out)
}

// has records that VPP has these lists, which are ours as of a change.
func (v *vectors) has(ours map[slot]uint32, change uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told, v.sent = ours, change
}

// existingLists returns the numbers of the IP lists that exist.
func (h *handler) existingLists(ctx context.Context) (map[uint32]bool, error) {
	all, err := conn.Dump[vppacl.ACLDetails](ctx, h.API, &vppacl.ACLDump{ACLIndex: none})
	out := make(map[uint32]bool, len(all))
	for _, d := range all {
		out[d.ACLIndex] = true
	}
	return out, err
}

// apply sets the vectors of an interface (VPP acl_interface_set_acl_list).
func (h *handler) apply(ctx context.Context, index interface_types.InterfaceIndex, in, out []uint32) error {
	if n := len(in) + len(out); n > maxLists {
		return fmt.Errorf("%d access lists on one interface; VPP applies at most %d in both directions together", n, maxLists)
	}
	return h.API.Call(ctx, &vppacl.ACLInterfaceSetACLList{
		SwIfIndex: index, NInput: uint8(len(in)), Acls: append(slices.Clone(in), out...),
	}, &vppacl.ACLInterfaceSetACLListReply{})
}

// setMACIP applies a MACIP list to an interface, or takes it off.
func (h *handler) setMACIP(ctx context.Context, index interface_types.InterfaceIndex, list uint32, add bool) error {
	end, err := h.attached.at(index).begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return h.API.Call(ctx, &vppacl.MacipACLInterfaceAddDel{IsAdd: add, SwIfIndex: index, ACLIndex: list}, &vppacl.MacipACLInterfaceAddDelReply{})
}

// allInterfaces selects the vectors of all interfaces in applied.
const allInterfaces = interface_types.InterfaceIndex(none)

// applied dumps the IP lists of one interface, or of all.
func (h *handler) applied(ctx context.Context, index interface_types.InterfaceIndex) ([]vppacl.ACLInterfaceListDetails, error) {
	all, err := conn.Dump[vppacl.ACLInterfaceListDetails](ctx, h.API, &vppacl.ACLInterfaceListDump{SwIfIndex: index})
	for _, d := range all {
		if int(d.NInput) > len(d.Acls) {
			return nil, fmt.Errorf("acl_interface_list_details of interface %d: %d incoming of %d lists: %w", d.SwIfIndex, d.NInput, len(d.Acls), conn.ErrProtocol)
		}
	}
	return all, err
}

// readAttachments reads the interfaces of all lists. applied are the IP lists among them, for renewVectors.
func (h *handler) readAttachments(ctx context.Context) (at map[Meta]*acl.ACL_Interfaces, applied []vppacl.ACLInterfaceListDetails, err error) {
	names, out := h.Interfaces.Names(), map[Meta]*acl.ACL_Interfaces{}
	note := func(list Meta, index interface_types.InterfaceIndex, egress bool) {
		name := names[uint32(index)]
		if name == "" {
			return
		}
		if out[list] == nil {
			out[list] = &acl.ACL_Interfaces{}
		}
		if egress {
			out[list].Egress = append(out[list].Egress, name)
		} else {
			out[list].Ingress = append(out[list].Ingress, name)
		}
	}
	applied, err = h.applied(ctx, allInterfaces)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range applied {
		for i, list := range d.Acls {
			note(Meta{Index: list}, d.SwIfIndex, i >= int(d.NInput))
		}
	}
	macip, err := conn.Dump[vppacl.MacipACLInterfaceListDetails](ctx, h.API, &vppacl.MacipACLInterfaceListDump{SwIfIndex: allInterfaces})
	if err != nil {
		return nil, nil, err
	}
	for _, d := range macip {
		for _, list := range d.Acls {
			note(Meta{Index: list, MACIP: true}, d.SwIfIndex, false)
		}
	}
	return out, applied, nil
}

// renewVectors replaces the vectors of all interfaces by VPP's. slots are the names of this agent's IP lists by number.
// No verb runs meanwhile: it would go on with its former vectors, whose turn excludes nobody any more.
func (h *handler) renewVectors(applied []vppacl.ACLInterfaceListDetails, slots map[uint32]string) {
	all := map[interface_types.InterfaceIndex]*vectors{}
	for _, d := range applied {
		at := newVectors()
		for i, list := range d.Acls {
			if name := slots[list]; name != "" {
				s := slot{name, i >= int(d.NInput)}
				at.ours[s], at.told[s] = list, list
			}
		}
		all[d.SwIfIndex] = at
	}
	h.attached.replace(all)
}

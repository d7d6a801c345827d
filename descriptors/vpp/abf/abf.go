// Package abf implements VPP's forwarding by access lists (ABF). A policy sends the packets
// that an access list permits along its own paths, instead of those of the routing table.
//
//	err := abf.Register(s, abf.Options{API: manager, Interfaces: links, Lists: lists, ...})
//
// The number of a policy is its identity in VPP and in its key. VPP has no room for an owner:
// a policy that nobody declares is left alone, unless the agent remembers having made it.
//
// VPP checks little here, so the descriptors must:
//
//	request                            | VPP 25.10
//	attach a policy that is missing    | dies (abf_itf_attach.c: the index is not checked)
//	detach with the other IP version   | dies (the same)
//	delete an attached policy          | dies
//	add paths that the policy has      | loses all its paths, and dies at the next request
//	change a policy that has a path by | dies (fib_path.c, fib_path_resolve), unless the request names
//	an index without an interface      | that index: then it refuses
//	attach once per IP version         | refuses the second: one attachment per interface
//	a path without next hop            | sends packets of the other IP version with this one's adjacency
//
// An attachment is a derived value of its policy, so it comes after it and goes before it.
// Its value has the IP version with which it was attached. Paths are added to an existing
// policy only after VPP was asked for those it has.
//
// VPP keeps a path whose interface was deleted. The path drops packets until the policy changes,
// also after another interface has got the index. lost.go removes such paths.
//
// The agent asks VPP which interfaces exist before it changes a policy. Two cases remain in which VPP dies: an
// interface is deleted between that answer and the change, or the agent deletes a policy to which another
// client has added a path by an interface that is deleted by now.
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package abf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"go.fd.io/govpp/api"
	vppabf "go.fd.io/govpp/binapi/abf"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/acl"
	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/abf"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	Name          = "vpp-abf"
	InterfaceName = "vpp-abf-to-interface"
)

// Options configure the descriptors. All fields are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	Lists      acl.Index
	Connection string
}

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	known known
}

// known is the agent's knowledge of VPP. Retrieve replaces it.
type known struct {
	mu sync.Mutex
	// asked are the policies for which paths were requested; VPP may have them, also if no
	// answer came.
	asked map[uint32]bool
	// attached are the attachments of each policy.
	attached map[uint32]attachments
}

// attachments are those of one policy, by the interface.
type attachments map[interface_types.InterfaceIndex]vppabf.AbfItfAttach

// Register adds the descriptors to s. The caller registers interfaces and access lists first.
func Register(s *scheduler.Scheduler, o Options) error {
	h := &handler{Options: o}
	registrar := s.OnConnection(o.Connection)
	_, err := scheduler.Register(registrar, h.descriptor())
	_, errInterface := scheduler.Register(registrar, h.interfaceDescriptor())
	return errors.Join(err, errInterface)
}

// descriptor implements the policies.
func (h *handler) descriptor() scheduler.Descriptor[*abf.ABF, struct{}] {
	return scheduler.Descriptor[*abf.ABF, struct{}]{
		Name:  Name,
		Model: models.For[*abf.ABF](),

		Validate: validate,
		Equivalent: func(_ string, old, new *abf.ABF) bool {
			return old.GetAclName() == new.GetAclName() && slices.Equal(pathsOf(old), pathsOf(new))
		},
		Recreate:     recreate,
		Dependencies: dependencies,
		Derived:      derived,
		// VPP has each policy by its number, and looks at all policies of an interface. So the
		// successor diverts packets before the old policy lets them take the routing table.
		MakeBeforeBreak: func(string, *abf.ABF) bool { return true },

		Create: h.create,
		Update: h.update,
		Delete: h.delete,
		Retrieve: readback.Retriever[*abf.ABF]{
			Read: h.readAll,
			ID:   func(v *abf.ABF) string { return strconv.FormatUint(uint64(v.GetIndex()), 10) },
		}.Retrieve,
		RetrieveAfter: []string{iface.Name, acl.Name},
	}
}

// interfaceDescriptor implements the attachment of a policy to an interface. It has no
// Retrieve: read reports the interfaces with their policy.
func (h *handler) interfaceDescriptor() scheduler.Descriptor[*abf.ABF_AttachedInterface, struct{}] {
	return scheduler.Descriptor[*abf.ABF_AttachedInterface, struct{}]{
		Name:   InterfaceName,
		Prefix: string(keys.ABFMembers),
		Match:  func(key string) bool { _, _, ok := keys.ABFMembers.Parse(key); return ok },

		Dependencies: func(key string, _ *abf.ABF_AttachedInterface) []scheduler.Dependency {
			_, name, _ := keys.ABFMembers.Parse(key)
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(name).Key()}}
		},

		Create: func(ctx context.Context, key string, v *abf.ABF_AttachedInterface) (struct{}, error) {
			return struct{}{}, h.attach(ctx, key, v)
		},
		Delete: h.detach,
	}
}

// versions returns the IP versions for which a policy is attached.
func versions(v *abf.ABF) (ipv4, ipv6 bool) {
	for _, a := range v.GetAttachedInterfaces() {
		ipv4, ipv6 = ipv4 || !a.GetIsIpv6(), ipv6 || a.GetIsIpv6()
	}
	return ipv4, ipv6
}

// faults collects the invalid fields of a value.
type faults struct{ models.Faults }

// maxPaths is the largest number of paths (VPP abf.api, u8).
const maxPaths = 255

// validate checks a policy.
func validate(_ string, v *abf.ABF) error {
	var f faults
	if v.GetAclName() == "" {
		f.Add("acl_name", "", "the name of an access list")
	}
	switch n := len(v.GetForwardingPaths()); {
	case n == 0:
		f.Add("forwarding_paths", nil, "at least one path")
	case n > maxPaths:
		f.Add("forwarding_paths", fmt.Sprint(n, " paths"), "at most 255")
	}
	seen := map[path]int{}
	ipv4, ipv6 := versions(v)
	for i, p := range v.GetForwardingPaths() {
		f.path(fmt.Sprintf("forwarding_paths[%d].", i), p)
		id := pathOf(p, ipv6).identity()
		if id.next == unspecified(true) && ipv4 || id.next == unspecified(false) && ipv6 {
			f.Add(fmt.Sprintf("forwarding_paths[%d].next_hop_ip", i), p.GetNextHopIp(), "an address, or nothing if the policy is attached for one IP version only")
		}
		if first, twice := seen[id]; twice {
			f.Add(fmt.Sprintf("forwarding_paths[%d]", i), nil, "each interface and next hop once; forwarding_paths[%d] has them already", first)
		} else {
			seen[id] = i
		}
	}
	attached := map[string]int{}
	for i, a := range v.GetAttachedInterfaces() {
		field, name := fmt.Sprintf("attached_interfaces[%d].input_interface", i), a.GetInputInterface()
		first, twice := attached[name]
		switch {
		case name == "":
			f.Add(field, "", "the name of an interface")
		case twice:
			f.Add(field, name, "each interface once, as VPP has one attachment of a policy to an interface for both IP versions; attached_interfaces[%d] has it already", first)
		default:
			attached[name] = i
		}
	}
	return f.Err()
}

// path checks one path.
func (f *faults) path(field string, p *abf.ABF_ForwardingPath) {
	if p.GetInterfaceName() == "" {
		f.Add(field+"interface_name", "", "the name of an interface")
	}
	next, err := netip.ParseAddr(p.GetNextHopIp())
	if p.GetNextHopIp() != "" && (err != nil || next.Zone() != "") {
		f.Add(field+"next_hop_ip", p.GetNextHopIp(), `an address, such as "10.0.0.1" or "fd00::1", or nothing`)
	}
	if p.GetDvr() && p.GetNextHopIp() != "" && !next.IsUnspecified() {
		f.Add(field+"next_hop_ip", p.GetNextHopIp(), "no address: with dvr, packets leave on layer 2")
	}
}

// A path is a forwarding path with defaults filled in.
type path struct {
	name               string     // of the interface
	next               netip.Addr // unspecified: the packet's own destination
	dvr                bool
	weight, preference uint32
}

// pathOf returns a path with defaults: weight 1, and the next hop 0.0.0.0, or :: if the policy is
// attached for IPv6.
func pathOf(p *abf.ABF_ForwardingPath, ipv6 bool) path {
	next, err := netip.ParseAddr(p.GetNextHopIp())
	if err != nil {
		next = unspecified(ipv6)
	}
	return path{p.GetInterfaceName(), next, p.GetDvr(), max(p.GetWeight(), 1), p.GetPreference()}
}

// unspecified returns the next hop that stands for the packet's own destination.
func unspecified(ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// identity returns the part of a path that VPP compares when it adds or removes one.
func (p path) identity() path {
	p.weight, p.preference = 0, 0
	return p
}

// lost reports whether the interface of a path that VPP has is unknown or was deleted.
func (p path) lost() bool { return p.name == "" }

// compare orders paths by their identity.
func (p path) compare(other path) int {
	byPlace := cmp.Or(cmp.Compare(p.name, other.name), p.next.Compare(other.next))
	switch {
	case byPlace != 0 || p.dvr == other.dvr:
		return byPlace
	case p.dvr:
		return 1
	}
	return -1
}

// pathsOf returns all paths in a fixed order: VPP has a set of them.
func pathsOf(v *abf.ABF) (out []path) {
	_, ipv6 := versions(v)
	for _, p := range v.GetForwardingPaths() {
		out = append(out, pathOf(p, ipv6))
	}
	slices.SortFunc(out, path.compare)
	return out
}

// recreate: VPP changes neither the list of a policy, nor weight and preference of a path.
func recreate(_ string, old, new *abf.ABF, _ struct{}) bool {
	if old.GetAclName() != new.GetAclName() {
		return true
	}
	before := map[path]path{}
	for _, p := range pathsOf(old) {
		before[p.identity()] = p
	}
	return slices.ContainsFunc(pathsOf(new), func(p path) bool {
		was, had := before[p.identity()]
		return had && was != p
	})
}

// dependencies requires the access list and all outgoing interfaces.
func dependencies(_ string, v *abf.ABF) []scheduler.Dependency {
	out := []scheduler.Dependency{{Label: "acl-exists", Key: keys.ACL(v.GetAclName())}}
	var names []string
	for _, p := range v.GetForwardingPaths() {
		names = append(names, p.GetInterfaceName())
	}
	return append(out, iface.DependOn("interface-exists", names)...)
}

// derived returns the attachments.
func derived(_ string, v *abf.ABF) (out []scheduler.KeyValue) {
	for _, a := range v.GetAttachedInterfaces() {
		out = append(out, scheduler.KeyValue{Key: keys.ABFMembers.Key(v.GetIndex(), a.GetInputInterface()), Value: a})
	}
	return out
}

// create makes a policy. If an earlier attempt may have made it, it is brought to these paths.
func (h *handler) create(ctx context.Context, _ string, v *abf.ABF) (struct{}, error) {
	h.known.mu.Lock()
	again := h.known.asked[v.GetIndex()]
	if h.known.asked == nil {
		h.known.asked = map[uint32]bool{}
	}
	h.known.asked[v.GetIndex()] = true
	h.known.mu.Unlock()
	if again {
		return h.update(ctx, "", nil, v, struct{}{})
	}
	return struct{}{}, h.setPaths(ctx, v, pathsOf(v), true)
}

// update brings the policy that VPP has to the paths of v. New ones come first, so that the
// policy never has none.
func (h *handler) update(ctx context.Context, _ string, _, v *abf.ABF, _ struct{}) (struct{}, error) {
	all, err := h.read(ctx, true)
	if err != nil {
		return struct{}{}, err
	}
	i := slices.IndexFunc(all, func(one *abf.ABF) bool { return one.GetIndex() == v.GetIndex() })
	if i < 0 {
		return struct{}{}, h.remake(ctx, v, h.known.attachedTo(v.GetIndex()))
	}
	was, is := pathsOf(all[i]), pathsOf(v)
	if recreate("", all[i], v, struct{}{}) || slices.ContainsFunc(was, path.lost) {
		return struct{}{}, h.replace(ctx, all[i], v)
	}
	if err := h.setPaths(ctx, v, lists.Without(is, was), true); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, h.setPaths(ctx, v, lists.Without(was, is), false)
}

// replace makes a policy anew that somebody else has changed, with its attachments.
func (h *handler) replace(ctx context.Context, has, v *abf.ABF) error {
	attached := h.known.attachedTo(v.GetIndex())
	if err := h.delete(ctx, "", has, struct{}{}); err != nil {
		return err
	}
	return h.remake(ctx, v, attached)
}

// remake makes a policy that VPP does not have any more, with the attachments that it had to existing
// interfaces.
func (h *handler) remake(ctx context.Context, v *abf.ABF, attached attachments) error {
	if err := h.setPaths(ctx, v, pathsOf(v), true); err != nil {
		return err
	}
	exists := iface.NamesByIndex(h.Interfaces.All())
	for at, a := range attached {
		if exists[uint32(at)] == "" {
			continue
		}
		if err := h.setAttachment(ctx, a, true); err != nil && !errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
			return err
		}
	}
	return nil
}

// setPaths adds paths to a policy, which the first ones create, or removes them (VPP
// abf_policy_add_del).
func (h *handler) setPaths(ctx context.Context, v *abf.ABF, paths []path, add bool) error {
	if len(paths) == 0 {
		return nil
	}
	request, err := h.request(v, paths, add)
	if err != nil {
		return err
	}
	return h.API.Call(ctx, request, &vppabf.AbfPolicyAddDelReply{})
}

// request returns the request to add or remove paths. Removing needs no list.
func (h *handler) request(v *abf.ABF, paths []path, add bool) (*vppabf.AbfPolicyAddDel, error) {
	list, ok := h.Lists.Get(v.GetAclName())
	switch {
	case add && !ok:
		return nil, fmt.Errorf("access list %s: %w", v.GetAclName(), iface.ErrNotFound)
	case add && list.MACIP:
		return nil, fmt.Errorf("access list %s has MACIP rules; expected IP rules", v.GetAclName())
	}
	out := &vppabf.AbfPolicyAddDel{IsAdd: add, Policy: vppabf.AbfPolicy{PolicyID: v.GetIndex(), ACLIndex: list.Index}}
	for _, p := range paths {
		link, err := iface.Find(h.Interfaces, p.name)
		if err != nil {
			return nil, err
		}
		one := fib_types.FibPath{SwIfIndex: link.Index, Weight: uint8(p.weight), Preference: uint8(p.preference)}
		one.Nh.Address = vppwire.Address(p.next).Un
		if p.next.Is6() {
			one.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
		}
		if p.dvr {
			one.Type = fib_types.FIB_API_PATH_TYPE_DVR
		}
		out.Policy.Paths = append(out.Policy.Paths, one)
	}
	return out, nil
}

// delete ends the attachments that are known, removes all paths, and with them the policy. The
// second request tells whether it is gone: VPP then refuses it. If it is not, or one of its interfaces
// was deleted, it is removed as VPP has it.
func (h *handler) delete(ctx context.Context, _ string, v *abf.ABF, _ struct{}) error {
	for at, a := range h.known.attachedTo(v.GetIndex()) {
		if err := h.end(v.GetIndex(), a.IsIPv6)(ctx, at); err != nil {
			return err
		}
	}
	request, err := h.request(v, pathsOf(v), false)
	if err == nil {
		first := conn.Ask(request, &vppabf.AbfPolicyAddDelReply{})
		second := conn.Ask(request, &vppabf.AbfPolicyAddDelReply{})
		err = h.API.Batch(ctx, first, second)
		if errors.Is(first.Err, api.INVALID_VALUE) || first.Err == nil && errors.Is(second.Err, api.INVALID_VALUE) {
			h.known.deleted(v.GetIndex())
			return nil
		}
	}
	if err != nil && !errors.Is(err, iface.ErrNotFound) && !errors.Is(err, api.NO_MATCHING_INTERFACE) {
		return err
	}
	if err := h.remove(ctx, v.GetIndex()); err != nil {
		return err
	}
	h.known.deleted(v.GetIndex())
	return nil
}

// attach attaches a policy to an interface (VPP abf_itf_attach_add_del).
func (h *handler) attach(ctx context.Context, key string, v *abf.ABF_AttachedInterface) error {
	policy, name, _ := keys.ABFMembers.Parse(key)
	link, err := iface.Find(h.Interfaces, name)
	if err != nil {
		return err
	}
	err = h.setAttachment(ctx, vppabf.AbfItfAttach{PolicyID: policy, SwIfIndex: link.SwIfIndex(), Priority: v.GetPriority(), IsIPv6: v.GetIsIpv6()}, true)
	if errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
		return nil // an earlier request, whose answer was lost; other settings are found when VPP is read back
	}
	return err
}

// detach ends an attachment. If the interface is gone, VPP keeps the attachment for its index.
func (h *handler) detach(ctx context.Context, key string, v *abf.ABF_AttachedInterface, _ struct{}) error {
	policy, name, _ := keys.ABFMembers.Parse(key)
	index, known := h.Interfaces.Last(name)
	if link, ok := h.Interfaces.Get(name); ok {
		index, known = link.Index, true
	}
	if !known {
		return nil
	}
	return h.end(policy, v.GetIsIpv6())(ctx, interface_types.InterfaceIndex(index))
}

// end returns the request that ends an attachment on an interface, if there is one.
func (h *handler) end(policy uint32, ipv6 bool) func(context.Context, interface_types.InterfaceIndex) error {
	return func(ctx context.Context, at interface_types.InterfaceIndex) error {
		err := h.setAttachment(ctx, vppabf.AbfItfAttach{PolicyID: policy, SwIfIndex: at, IsIPv6: ipv6}, false)
		if err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) {
			return err
		}
		h.known.detach(policy, at)
		return nil
	}
}

// attach records an attachment.
func (k *known) attach(a vppabf.AbfItfAttach) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.attached == nil {
		k.attached = map[uint32]attachments{}
	}
	if k.attached[a.PolicyID] == nil {
		k.attached[a.PolicyID] = attachments{}
	}
	k.attached[a.PolicyID][a.SwIfIndex] = a
}

// detach drops an attachment.
func (k *known) detach(policy uint32, at interface_types.InterfaceIndex) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.attached[policy], at)
}

// attachedTo returns a copy of the attachments of a policy.
func (k *known) attachedTo(policy uint32) attachments {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.attached[policy])
}

// deleted drops a policy.
func (k *known) deleted(policy uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.asked, policy)
	delete(k.attached, policy)
}

// reset drops everything: VPP was read back.
func (k *known) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked, k.attached = nil, nil
}

// setAttachment adds or ends an attachment. One that was asked for counts as known even if no
// answer comes.
func (h *handler) setAttachment(ctx context.Context, a vppabf.AbfItfAttach, add bool) error {
	if add {
		h.known.attach(a)
	}
	return h.API.Call(ctx, &vppabf.AbfItfAttachAddDel{IsAdd: add, Attach: a}, &vppabf.AbfItfAttachAddDelReply{})
}

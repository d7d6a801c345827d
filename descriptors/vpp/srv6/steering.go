package srv6

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/layer2"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// The return values of sr_steering_add_del (VPP sr_steering.c, sr_steering_policy).
const (
	nowhere     = -2 // there is no such policy
	notHardware = -3
	notSteered  = -4
	noHeader    = -5
)

// steeringDescriptor implements steering into policies. Another policy makes it anew: VPP would
// change it in place, but then does not check whether the policy fits the traffic.
func (h *handler) steeringDescriptor() scheduler.Descriptor[*srv6.Steering, struct{}] {
	return scheduler.Descriptor[*srv6.Steering, struct{}]{
		Name:  SteeringName,
		Model: models.For[*srv6.Steering](),

		Validate: validateSteering,
		Equivalent: func(_ string, old, new *srv6.Steering) bool {
			return spelling.Canonical(old.GetPolicyBsid()) == spelling.Canonical(new.GetPolicyBsid()) && trafficOf(old) == trafficOf(new)
		},
		Dependencies: dependenciesOfSteering,
		Claims:       claimsOfSteering,
		Resolve: func(_ string, v *srv6.Steering) *srv6.Steering {
			v = proto.CloneOf(v)
			v.Name = trafficOf(v).name()
			return v
		},

		Create:        h.createSteering,
		Delete:        h.deleteSteering,
		Retrieve:      h.retrieveSteering,
		RetrieveAfter: []string{iface.Name},
	}
}

// framesField is the field of the interface whose frames are steered.
const framesField = "l2_traffic.interface_name"

// A traffic is the identity of steering in VPP: the frames of an interface, or the packets to a
// network.
type traffic struct {
	frames string // the name of the interface; empty: packets
	table  uint32
	prefix netip.Prefix // not valid: the value is not
}

// trafficOf returns the traffic of a value, as a network without bits of a host.
func trafficOf(v *srv6.Steering) traffic {
	if l2, is := v.GetTraffic().(*srv6.Steering_L2Traffic_); is {
		return traffic{frames: l2.L2Traffic.GetInterfaceName()}
	}
	l3 := v.GetL3Traffic()
	prefix, err := netip.ParsePrefix(l3.GetPrefixAddress())
	if err != nil || prefix.Addr().Is4In6() {
		return traffic{table: l3.GetInstallationVrfId()}
	}
	return traffic{table: l3.GetInstallationVrfId(), prefix: prefix.Masked()}
}

// name returns the name of steering that nobody declares: VPP has no names.
func (t traffic) name() string {
	if t.frames != "" {
		return "UNNAMED-interface-" + t.frames
	}
	return fmt.Sprintf("UNNAMED-vrf-%d-%s", t.table, t.prefix)
}

// steered are the names that this agent has given to steering in VPP, by traffic. So steering
// whose value gets other traffic is still found under its key.
type steered struct {
	mu      sync.Mutex // guards all below
	names   map[traffic]string
	traffic map[string]traffic // by name: the inverse of names
}

// set notes the name of steering; an empty one forgets it.
func (s *steered) set(t traffic, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names, s.traffic = map[traffic]string{}, map[string]traffic{}
	}
	delete(s.traffic, s.names[t])
	delete(s.names, t)
	if name == "" {
		return
	}
	if other, ok := s.traffic[name]; ok {
		delete(s.names, other)
	}
	s.names[t], s.traffic[name] = name, t
}

// all returns the names by traffic.
func (s *steered) all() map[traffic]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[traffic]string{}
	maps.Copy(out, s.names)
	return out
}

// isIPv6 reports the IP version of packets.
func (t traffic) isIPv6() bool { return t.prefix.Addr().Is6() }

func validateSteering(_ string, v *srv6.Steering) error {
	var f faults
	if v.GetName() == "" {
		f.Add("name", "", "a name")
	}
	switch ref := v.GetPolicyRef().(type) {
	case *srv6.Steering_PolicyIndex:
		f.Add("policy_index", ref.PolicyIndex, "policy_bsid: the index of a policy changes when VPP restarts")
	default:
		f.address("policy_bsid", v.GetPolicyBsid())
	}
	switch v.GetTraffic().(type) {
	case nil:
		f.Add("traffic", nil, "l2_traffic or l3_traffic")
	case *srv6.Steering_L2Traffic_:
		f.named(framesField, v.GetL2Traffic().GetInterfaceName())
	case *srv6.Steering_L3Traffic_:
		if !trafficOf(v).prefix.IsValid() {
			f.Add("l3_traffic.prefix_address", v.GetL3Traffic().GetPrefixAddress(), `a network with its length, such as "10.2.0.0/16" or "fd00:2::/64"`)
		}
	}
	return f.Err()
}

// dependenciesOfSteering requires the policy, whose key may have another spelling, and the
// interface or table. Table 0 exists always.
func dependenciesOfSteering(_ string, v *srv6.Steering) []scheduler.Dependency {
	bsid := spelling.Canonical(v.GetPolicyBsid())
	out := []scheduler.Dependency{{
		Label: "policy-exists", Prefixes: []string{keys.SRv6Policies},
		Match: func(key string) bool { return spelling.Canonical(strings.TrimPrefix(key, keys.SRv6Policies)) == bsid },
	}}
	switch t := trafficOf(v); {
	case t.frames != "":
		out = append(out, scheduler.Dependency{Label: "interface-exists", Key: keys.Interface(t.frames).Key()})
	case t.table != 0:
		out = append(out, scheduler.Dependency{Label: "vrf-table-exists", Key: keys.VRFTable(t.table, t.isIPv6())})
	}
	return out
}

// claimsOfSteering claims the traffic: VPP steers it into one policy. The network of a single
// IPv6 address cannot be that of a local SID or policy, too.
func claimsOfSteering(_ string, v *srv6.Steering) []scheduler.Claim {
	t := trafficOf(v)
	if t.frames != "" {
		return []scheduler.Claim{claimOnFrames(framesField, t.frames)}
	}
	const field = "l3_traffic.prefix_address"
	spelled := v.GetL3Traffic().GetPrefixAddress()
	out := []scheduler.Claim{{
		Resource: fmt.Sprintf("vpp-srv6-steering/%d/%s", t.table, t.prefix), Field: field, Value: spelled,
		Want: "a network that nothing else steers in this table",
	}}
	if t.isIPv6() && t.prefix.IsSingleIP() {
		out = append(out, claimOnAddress(field, spelled, t.table, t.prefix.Addr().String()))
	}
	return out
}

// createSteering steers traffic into a policy. Steering of this traffic that an earlier attempt
// or somebody else made ends first, so that VPP checks the policy.
func (h *handler) createSteering(ctx context.Context, _ string, v *srv6.Steering) (struct{}, error) {
	t := trafficOf(v)
	q, err := h.steeringOf(ctx, t)
	if err != nil {
		return struct{}{}, err
	}
	if err := h.endSteering(ctx, q); err != nil {
		return struct{}{}, err
	}
	if t.frames != "" {
		if err := h.Modes.Enter(ctx, q.SwIfIndex); err != nil {
			return struct{}{}, err
		}
	}
	add := *q
	add.BsidAddr = unicast(v.GetPolicyBsid()).As16()
	// VPP may have it also if no answer comes.
	h.steered.set(t, v.GetName())
	if t.frames != "" {
		h.Interfaces.Leftovers().Note(uint32(q.SwIfIndex), t.frames, framesKind, h.endFrames)
	}
	err = h.API.Call(ctx, &add, &sr.SrSteeringAddDelReply{})
	switch retval(err) {
	case nowhere:
		err = fmt.Errorf("policy %s: %w", v.GetPolicyBsid(), iface.ErrNotFound)
	case notHardware:
		err = conn.Unimplemented("%s: interface %s is a sub-interface, whose frames VPP cannot steer before 26.06", framesField, t.frames)
	case noHeader:
		err = fmt.Errorf("policy %s inserts segments into the headers of IPv6 packets; expected one with srh_encapsulation for frames and IPv4 packets", v.GetPolicyBsid())
	}
	return struct{}{}, err
}

// steeringOf returns the request about some traffic, without a policy. A request that would kill
// VPP is an error.
func (h *handler) steeringOf(ctx context.Context, t traffic) (*sr.SrSteeringAddDel, error) {
	if t.frames != "" {
		link, err := iface.Find(h.Interfaces, t.frames)
		if err != nil {
			return nil, err
		}
		return &sr.SrSteeringAddDel{TrafficType: sr_types.SR_STEER_API_L2, SwIfIndex: link.SwIfIndex()}, h.needFrames(ctx, framesField, t.frames, link)
	}
	has, err := h.hasTable(ctx, t.table, t.isIPv6())
	if err == nil && !has {
		err = fmt.Errorf("table %d of the network: %w", t.table, iface.ErrNotFound)
	}
	q := &sr.SrSteeringAddDel{TrafficType: sr_types.SR_STEER_API_IPV4, TableID: t.table, Prefix: vppwire.Prefix(t.prefix), SwIfIndex: ^interface_types.InterfaceIndex(0)}
	if t.isIPv6() {
		q.TrafficType = sr_types.SR_STEER_API_IPV6
	}
	return q, err
}

// endSteering ends steering, if there is any. From 26.06 on, an interface whose frames were steered
// leaves layer 2 then.
func (h *handler) endSteering(ctx context.Context, q *sr.SrSteeringAddDel) error {
	end := *q
	end.IsDel = true
	var err error
	if q.TrafficType == sr_types.SR_STEER_API_L2 {
		err = h.Modes.Leave(ctx, q.SwIfIndex, &end, &sr.SrSteeringAddDelReply{})
	} else {
		err = h.API.Call(ctx, &end, &sr.SrSteeringAddDelReply{})
	}
	return ended(err)
}

// ended is the error of a request to end steering: steering that VPP does not have has ended.
func ended(err error) error {
	if code := retval(err); code == notSteered || code == notHardware {
		return nil
	}
	return err
}

// deleteSteering ends steering. VPP cannot end that of an interface which was deleted; it ends as
// soon as another interface has the index. A table that was deleted takes its steering along only when it is there again: until
// then, the deletion fails.
func (h *handler) deleteSteering(ctx context.Context, _ string, v *srv6.Steering, _ struct{}) error {
	t := trafficOf(v)
	if _, ok := h.Interfaces.Get(t.frames); t.frames != "" && !ok {
		return nil
	}
	q, err := h.steeringOf(ctx, t)
	if err == nil {
		err = h.endSteering(ctx, q)
	}
	if err == nil {
		h.steered.set(t, "")
		h.Interfaces.Leftovers().Ended(uint32(q.SwIfIndex), framesKind)
	}
	if t.frames != "" && (errors.Is(err, iface.ErrNotFound) || errors.Is(err, api.INVALID_SW_IF_INDEX)) {
		return nil
	}
	return err
}

// retrieveSteering yields all steering. VPP has no names: steering that this agent has made has
// the name that it was made with, and other steering that of a declared value with its traffic.
func (h *handler) retrieveSteering(ctx context.Context, wanted []scheduler.Desired[*srv6.Steering]) iter.Seq2[scheduler.Found[*srv6.Steering, struct{}], error] {
	return reading.Of(func(learns bool, yield func(scheduler.Found[*srv6.Steering, struct{}], error) bool) {
		all, broken, err := h.readSteering(ctx, learns)
		if err != nil {
			yield(scheduler.Found[*srv6.Steering, struct{}]{}, err)
			return
		}
		made, taken := h.steered.all(), map[string]bool{}
		for _, v := range all {
			if name := made[trafficOf(v)]; name != "" {
				v.Name, taken[name] = name, true
			}
		}
		declared := map[traffic]string{}
		for _, w := range wanted {
			if !taken[w.Value.GetName()] {
				declared[trafficOf(w.Value)] = w.Value.GetName()
			}
		}
		for _, v := range all {
			t := trafficOf(v)
			if name := declared[t]; made[t] == "" && name != "" {
				v.Name, made[t] = name, name
				if learns {
					h.steered.set(t, name)
				}
			}
			if broken[t] && isDeclared(wanted, t) {
				continue // it is missing, and is made anew
			}
			if !yield(scheduler.Found[*srv6.Steering, struct{}]{Value: v, OwnerUnknown: made[t] == ""}, nil) {
				return
			}
		}
	})
}

// isDeclared reports whether a value declares the steering of some traffic.
func isDeclared(wanted []scheduler.Desired[*srv6.Steering], t traffic) bool {
	return slices.ContainsFunc(wanted, func(w scheduler.Desired[*srv6.Steering]) bool { return trafficOf(w.Value) == t })
}

// readSteering returns all steering, under the names of [traffic.name]. Steering is broken if VPP lists
// it and does not steer: somebody has set its interface to layer 3 (from 26.06 on). That of an interface which was deleted is noted if the
// read learns: the next interface with its index would lose its frames.
func (h *handler) readSteering(ctx context.Context, learns bool) (out []*srv6.Steering, broken map[traffic]bool, err error) {
	all, err := conn.Dump[sr.SrSteeringPolDetails](ctx, h.API, &sr.SrSteeringPolDump{})
	if err != nil {
		return nil, nil, err
	}
	names := h.Interfaces.Names()
	broken = map[traffic]bool{}
	for _, d := range all {
		v := &srv6.Steering{PolicyRef: &srv6.Steering_PolicyBsid{PolicyBsid: netip.AddrFrom16(d.Bsid).String()}}
		index := uint32(d.SwIfIndex)
		switch name := names[index]; {
		case d.TrafficType != sr_types.SR_STEER_API_L2:
			v.Traffic = &srv6.Steering_L3Traffic_{L3Traffic: &srv6.Steering_L3Traffic{InstallationVrfId: d.FibTable, PrefixAddress: steeredNetwork(d).String()}}
		case name == "" && learns:
			err = h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, index, framesKind, h.endFrames)
			fallthrough
		case name == "":
			v = nil
		default:
			if learns {
				h.Interfaces.Leftovers().Note(index, name, framesKind, h.endFrames)
			}
			v.Traffic = &srv6.Steering_L2Traffic_{L2Traffic: &srv6.Steering_L2Traffic{InterfaceName: name}}
			broken[trafficOf(v)], err = h.isBroken(ctx, d.SwIfIndex)
		}
		if err != nil {
			return nil, nil, err
		}
		if v == nil {
			continue
		}
		v.Name = trafficOf(v).name()
		out = append(out, v)
	}
	return out, broken, nil
}

// isBroken reports whether VPP does not steer the frames of an interface, although it lists that.
func (h *handler) isBroken(ctx context.Context, index interface_types.InterfaceIndex) (bool, error) {
	features, err := layer2.Of(ctx, h.API, index)
	return features.Known() && !features.Has(layer2.Steering), err
}

// steeredNetwork returns the network in a dump. VPP tells the IP version by the value, so ::/0
// comes as 0.0.0.0/0; the kind of traffic says which it is.
func steeredNetwork(d sr.SrSteeringPolDetails) netip.Prefix {
	if d.TrafficType == sr_types.SR_STEER_API_IPV6 {
		return netip.PrefixFrom(asIPv6(d.Prefix.Address), int(d.Prefix.Len))
	}
	return netip.PrefixFrom(vppwire.Addr(ip_types.Address{Un: d.Prefix.Address.Un}), int(d.Prefix.Len))
}

// framesKind is the kind of state that VPP keeps on the index of a deleted interface: it gives
// the frames of the next interface with the index to the policy.
const framesKind = "SRv6 steering of frames"

// endFrames ends the steering of frames that an earlier interface has left on an index. The interface that has the
// index now may be in a bridge domain or cross-connect of somebody else.
func (h *handler) endFrames(ctx context.Context, at interface_types.InterfaceIndex) error {
	end := &sr.SrSteeringAddDel{IsDel: true, TrafficType: sr_types.SR_STEER_API_L2, SwIfIndex: at}
	return ended(h.Modes.Keep(ctx, at, end, &sr.SrSteeringAddDelReply{}))
}

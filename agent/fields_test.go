package agent

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// unseen are the fields of which a change by hand is no drift, each with the reason.
func unseen() map[protoreflect.FullName]string {
	const noScan = "VPP probes a neighbour when it is old, and has no such setting"
	return map[protoreflect.FullName]string{
		"ligato.linux.iptables.RuleChain.interfaces":      "what the rules wait for; the kernel has no such list",
		"ligato.vpp.acl.ACL.Rule.IpRule.Ip.protocol":      "beside icmp, tcp or udp, as in the samples, 0 and their number mean the same, and others are refused",
		"ligato.vpp.interfaces.TapLink.version":           "VPP makes one kind of TAP, whatever the version",
		"ligato.vpp.interfaces.VmxNet3Link.enable_elog":   "VPP does not report it",
		"ligato.vpp.l3.IPScanNeighbor.max_proc_time":      noScan,
		"ligato.vpp.l3.IPScanNeighbor.max_update":         noScan,
		"ligato.vpp.l3.IPScanNeighbor.scan_int_delay":     noScan,
		"ligato.vpp.l3.IPScanNeighbor.scan_interval":      noScan,
		"ligato.vpp.nat.VirtualReassembly.drop_fragments": "VPP translates fragments, and cannot drop them instead; a warning says so",
		"ligato.vpp.srv6.LocalSID.EndDX2.vlan_tag":        "VPP sends frames as they are; a warning says so",
	}
}

// Each field of each model is compared with what is read back: if the system has another value in it, that is drift, and
// the agent repairs it. The samples have each field.
func TestEachFieldHasDrift(t *testing.T) {
	s := describedScheduler(t)
	seen := map[protoreflect.FullName]bool{}
	for _, one := range allSamples(t) {
		if inspect.KindOf(s, one.key) == "" {
			continue // nothing applies the model
		}
		names := one.model.KeyFields()
		setFields(one.value.ProtoReflect(), func(path []step, fd protoreflect.FieldDescriptor) {
			if len(path) == 1 && slices.Contains(names, string(fd.Name())) {
				return // another value has another key
			}
			seen[fd.FullName()] = seen[fd.FullName()] || differs(s, one, path)
		})
	}
	for _, field := range slices.Sorted(maps.Keys(seen)) {
		switch why := unseen()[field]; {
		case !seen[field] && why == "":
			t.Errorf("%s: another value of it in the system is no drift. Have Equivalent of its descriptor compare it, and Retrieve report it, or derive a value from it "+
				"(CONTRIBUTING.md, \"Add a field\"); or say in unseen of this file why it cannot be seen", field)
		case seen[field] && why != "":
			t.Errorf("%s: it is compared with what is read back: take it out of unseen", field)
		}
	}
	for field := range unseen() {
		if _, ok := seen[field]; !ok {
			t.Errorf("%s is in unseen, and in no sample", field)
		}
	}
}

// A step leads from a message to a field, or to an element of it.
type step struct {
	fd protoreflect.FieldDescriptor
	at int // of a list
}

// setFields calls each for every field that is set in m and in the messages in it, with the way to it. A list of
// messages is a field, and so are the fields of its elements.
func setFields(m protoreflect.Message, each func(path []step, fd protoreflect.FieldDescriptor), above ...step) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		path := append(slices.Clip(above), step{fd, 0})
		each(path, fd)
		switch {
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				setFields(v.List().Get(i).Message(), each, append(slices.Clip(above), step{fd, i})...)
			}
		default:
			setFields(v.Message(), each, path...)
		}
		return true
	})
}

// differs reports whether it is drift if the field at path has another value in the system, or none. Of the other values,
// those count that the descriptor accepts, or all if it accepts none.
func differs(s *scheduler.Scheduler, one sampled, path []step) bool {
	var valid, invalid bool
	accepted := 0
	for _, other := range others(one.value, path) {
		drift := inspect.Differs(s, one.key, other, one.value)
		if s.Validate(scheduler.KeyValue{Key: one.key, Value: other}) == nil {
			accepted++
			valid = valid || drift
		}
		invalid = invalid || drift
	}
	return valid || accepted == 0 && invalid
}

// others returns values that differ from v in the field at path.
func others(v proto.Message, path []step) (out []proto.Message) {
	last := path[len(path)-1].fd
	with := func(change func(m protoreflect.Message)) {
		other := proto.Clone(v)
		m := other.ProtoReflect()
		for _, s := range path[:len(path)-1] {
			if below := m.Get(s.fd); s.fd.IsList() {
				m = below.List().Get(s.at).Message()
			} else {
				m = below.Message()
			}
		}
		change(m)
		if !proto.Equal(other, v) {
			out = append(out, other)
		}
	}
	with(func(m protoreflect.Message) { m.Clear(last) })
	if last.IsList() || last.IsMap() {
		return out
	}
	for _, change := range changes(last) {
		with(func(m protoreflect.Message) { m.Set(last, change(m.Get(last))) })
	}
	return out
}

// changes returns functions that make other values of a field; none for a message.
func changes(fd protoreflect.FieldDescriptor) (out []func(protoreflect.Value) protoreflect.Value) {
	type value = protoreflect.Value
	switch fd.Kind() {
	case protoreflect.BoolKind:
		out = append(out, func(v value) value { return protoreflect.ValueOfBool(!v.Bool()) })
	case protoreflect.StringKind:
		out = append(out, func(v value) value { return protoreflect.ValueOfString(v.String() + "1") })
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		for i := range values.Len() {
			out = append(out, func(value) value { return protoreflect.ValueOfEnum(values.Get(i).Number()) })
		}
	case protoreflect.Uint32Kind:
		// A system may round, so there are values that are far from the first.
		for _, change := range []func(uint32) uint32{func(n uint32) uint32 { return n + 1 }, func(n uint32) uint32 { return 2 * n }, func(n uint32) uint32 { return n / 2 }} {
			out = append(out, func(v value) value { return protoreflect.ValueOfUint32(change(uint32(v.Uint()))) })
		}
	case protoreflect.Uint64Kind:
		out = append(out, func(v value) value { return protoreflect.ValueOfUint64(v.Uint() + 1) })
	case protoreflect.Int32Kind:
		out = append(out, func(v value) value { return protoreflect.ValueOfInt32(int32(v.Int()) + 1) })
	case protoreflect.Int64Kind:
		out = append(out, func(v value) value { return protoreflect.ValueOfInt64(v.Int() + 1) })
	default:
	}
	return out
}

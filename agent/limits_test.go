package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// relative are fields with values that another field excludes, although they are within the
// limits of their own field: a network in the other IP version, a range that ends before it
// begins, a name in a tag with other content. The values that the limits refuse are tried for
// them too.
var relative = []protoreflect.FullName{
	"ligato.linux.interfaces.Interface.mtu",                   // IPv6 needs 1280
	"ligato.linux.interfaces.Interface.name",                  // is the name of the kernel too, and in an alias
	"ligato.linux.namespace.NetNamespace.reference",           // as type says
	"ligato.linux.iptables.RuleChain.name",                    // is in a comment with the namespace
	"ligato.linux.iptables.RuleChain.chain_name",              // some characters
	"ligato.netalloc.IPAllocation.network_name",               // without slashes
	"ligato.vpp.acl.ACL.Rule.IpRule.Ip.protocol",              // that of tcp
	"ligato.vpp.acl.ACL.Rule.IpRule.Icmp.Range.last",          // at least first
	"ligato.vpp.acl.ACL.Rule.IpRule.PortRange.upper_port",     // at least lower_port
	"ligato.vpp.acl.ACL.Rule.MacIpRule.source_address_prefix", // at most 32 for IPv4
	"ligato.vpp.interfaces.Interface.name",                    // of VMXNET3
	"ligato.vpp.interfaces.Interface.RxPlacement.queue",       // each once
	"ligato.vpp.ipsec.SecurityAssociation.integ_key",          // a length that depends
	"ligato.vpp.ipsec.SecurityAssociation.crypto_key",         // the length of the algorithm
	"ligato.vpp.ipsec.SecurityPolicy.local_port_stop",         // at least local_port_start
	"ligato.vpp.ipsec.SecurityPolicy.remote_port_stop",        // at least remote_port_start
	"ligato.vpp.nat.DNat44.label",                             // is in a tag with settings
	"ligato.vpp.nat.DNat44.StaticMapping.LocalIP.probability", // a sum
	"ligato.vpp.srv6.Policy.SegmentList.weight",               // each list once
	"ligato.vpp.l3.Route.via_vrf_id",                          // another table than vrf_id
}

// A sampledField is one field of a message in a value.
type sampledField struct {
	path string
	fd   protoreflect.FieldDescriptor
	in   protoreflect.Message
}

// fieldsOf returns the fields that are set in a message and in those below it. Of a list without
// messages it returns the first element.
func fieldsOf(m protoreflect.Message, path string) (out []sampledField) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := path + string(fd.Name())
		switch {
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				out = append(out, fieldsOf(v.List().Get(i).Message(), fmt.Sprintf("%s[%d].", name, i))...)
			}
		case fd.Message() != nil:
			out = append(out, fieldsOf(v.Message(), name+".")...)
		default:
			out = append(out, sampledField{name, fd, m})
		}
		return true
	})
	return out
}

// with calls try while the field has another value, or none if v is not valid.
func (f sampledField) with(v protoreflect.Value, try func()) {
	before := proto.Clone(f.in.Interface())
	switch {
	case !v.IsValid():
		f.in.Clear(f.fd)
	case f.fd.IsList():
		f.in.Mutable(f.fd).List().Set(0, v)
	default:
		f.in.Set(f.fd, v)
	}
	try()
	proto.Reset(f.in.Interface())
	proto.Merge(f.in.Interface(), before)
}

// candidates returns values of a field: the borders of its limits and of its type, and texts in
// the usual formats.
func (f sampledField) candidates() (out []protoreflect.Value) {
	l := limits.Of(f.fd)
	switch f.fd.Kind() {
	case protoreflect.Uint32Kind:
		for _, n := range []int64{0, 1, 3, l.Min - 1, l.Min, l.Max, l.Max + 1, 255, 256, 4095, 4096, 1<<16 - 1, 1 << 16, 1 << 24, 1<<32 - 2, 1<<32 - 1} {
			if n >= 0 && n < 1<<32 {
				out = append(out, protoreflect.ValueOfUint32(uint32(n)))
			}
		}
	case protoreflect.Int32Kind:
		for _, n := range []int32{-1 << 31, -1, 0, 1, 1<<31 - 1} {
			out = append(out, protoreflect.ValueOfInt32(n))
		}
	case protoreflect.EnumKind:
		for n := range protoreflect.EnumNumber(20) {
			out = append(out, protoreflect.ValueOfEnum(n))
		}
	case protoreflect.StringKind:
		texts := []string{"10.0.0.9", "10.0.0.9/24", "10.0.0.0/24", "fd00::9", "fd00::9/64", "fd00::/64", "alloc:n/i", "02:00:00:00:00:01", "fe80::1%eth0", "x", "a b", "a/b"}
		for _, n := range []int{15, 16, l.MaxBytes, l.MaxBytes + 1} {
			texts = append(texts, strings.Repeat("x", n))
		}
		for _, text := range texts {
			out = append(out, protoreflect.ValueOfString(text))
		}
	default: // a flag has no limits
	}
	return append(out, protoreflect.Value{})
}

// names reports whether err is about a field. The path of a list is as good as that of its element.
func names(err error, f sampledField) bool {
	return slices.ContainsFunc(models.Fields(err), func(path string) bool { return path == f.path || path == f.path+"[0]" })
}

// TestLimitsAreThoseOfTheAgent gives each field of each sample values within and outside of its
// limits. The agent refuses the field if the limits refuse it. It accepts a number, a flag or an
// enumeration that the limits allow, and at least one such text: the sample itself.
func TestLimitsAreThoseOfTheAgent(t *testing.T) {
	s := describedScheduler(t)
	tried, refused := 0, 0
	for _, one := range allSamples(t) {
		m, key, v := one.model, one.key, one.value
		for _, f := range fieldsOf(v.ProtoReflect(), "") {
			for _, c := range f.candidates() {
				f.with(c, func() {
					tried++
					wrong := names(limits.Check(v), f)
					err := s.Validate(scheduler.KeyValue{Key: key, Value: v})
					exact := c.IsValid() && f.fd.Kind() != protoreflect.StringKind && f.fd.Kind() != protoreflect.EnumKind && !slices.Contains(relative, f.fd.FullName())
					switch {
					case wrong && !names(err, f):
						t.Errorf("%s: %s = %v: the limits refuse it, and the agent says %v", m.Name(), f.path, c, err)
					case !wrong && exact && names(err, f):
						t.Errorf("%s: %s = %v: the limits allow it, and the agent says %v", m.Name(), f.path, c, err)
					case wrong:
						refused++
					}
				})
			}
		}
		if err := limits.Check(v); err != nil {
			t.Errorf("%s: sample: %v", m.Name(), err)
		}
	}
	if refused < 300 {
		t.Errorf("of %d values the limits refuse %d, want hundreds", tried, refused)
	}
}

// TestARangeIsSaidOnce refuses values outside of a range with the words of the model, which
// agentctl model inspect shows too, and not with those of a second check.
func TestARangeIsSaidOnce(t *testing.T) {
	s := describedScheduler(t)
	long := strings.Repeat("x", 64)
	permit := &acl.ACL_Rule{Action: acl.ACL_Rule_PERMIT, IpRule: &acl.ACL_Rule_IpRule{}}
	for _, v := range []proto.Message{
		&interfaces.Interface{Name: "a", Type: interfaces.Interface_DUMMY, Mtu: 67},
		&interfaces.Interface{Name: "v", Type: interfaces.Interface_VRF_DEVICE, Link: &interfaces.Interface_VrfDev{VrfDev: &interfaces.VrfDevLink{}}},
		&l2.BridgeDomain{Name: long},
		&acl.ACL{Name: long, Rules: []*acl.ACL_Rule{permit}},
	} {
		m, _ := models.BuiltIn().ForMessage(v)
		key, err := m.Key(v)
		if err != nil {
			t.Fatal(err)
		}
		got, want := s.Validate(scheduler.KeyValue{Key: key, Value: v}), limits.Check(v)
		if got == nil || want == nil || !strings.Contains(got.Error(), want.Error()) {
			t.Errorf("%s: the agent says %v, and the model %v", m.Name(), got, want)
		}
	}
}

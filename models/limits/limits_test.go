package limits_test

import (
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// TestTheTableNamesFields has each row of the table belong to a field of a built-in model.
func TestTheTableNamesFields(t *testing.T) {
	known := map[string]bool{}
	var add func(md protoreflect.MessageDescriptor)
	add = func(md protoreflect.MessageDescriptor) {
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			name := strings.TrimPrefix(string(fd.FullName()), "ligato.")
			if fresh := !known[name]; fresh && fd.Message() != nil {
				known[name] = true
				add(fd.Message())
			}
			known[name] = true
		}
	}
	for _, m := range models.BuiltIn().All() {
		add(m.New().ProtoReflect().Descriptor())
	}
	for _, name := range limits.Known() {
		if !known[name] {
			t.Errorf("no model has the field %s", name)
		}
	}
}

// TestFormats has texts that are valid, and others that are not. A valid text matches the pattern.
func TestFormats(t *testing.T) {
	for format, tt := range map[limits.Format]struct{ valid, invalid string }{
		limits.IP:          {"10.0.0.1 fd00::1 ::ffff:10.0.0.1", "10.0.0.1/24 fe80::1%eth0 x 10.0.0"},
		limits.IPv4:        {"10.0.0.1", "fd00::1 10.0.0.1/24"},
		limits.IPv6:        {"fd00::1 ::", "10.0.0.1 ::ffff:10.0.0.1"},
		limits.IPOrNet:     {"10.0.0.1 10.0.0.1/24 fd00::1/64", "10.0.0.1/33 x"},
		limits.IPv4OrNet:   {"10.0.0.1 10.0.0.1/24", "fd00::1"},
		limits.IPv6OrNet:   {"fd00::1 fd00::1/64", "10.0.0.1"},
		limits.Network:     {"10.0.0.1/24 fd00::1/64", "10.0.0.1"},
		limits.IPv4Network: {"10.0.0.1/24", "fd00::1/64"},
		limits.IPv6Network: {"fd00::1/64", "10.0.0.1/24"},
		limits.Subnet:      {"10.0.0.0/24 ::/0", "10.0.0.1/24"},
		limits.MAC:         {"02:00:00:00:00:01 02-00-00-00-00-01 0200.0000.0001", "02:00 02:00:00:00:00:00:00:01 x"},
		limits.HostName:    {"eth0 a.b ä", "a/b a:b abcdefghijklmnop .."},
		limits.Key32:       {"4Mrj93TnPJzh/EGQSVNrGLXQqAYLe7BMh7Ro3d2TQlQ=", "4Mrj 4Mrj93TnPJzh/EGQSVNrGLXQqAYLe7BMh7Ro3d2TQlR="},
		limits.Hex:         {"0aFF", "0 x"},
	} {
		pattern := regexp.MustCompile(limits.Limits{Format: format}.Pattern())
		for text := range strings.FieldsSeq(tt.valid + " " + format.Example()) {
			if !format.Valid(text) || !pattern.MatchString(text) {
				t.Errorf("%s: %s is valid %t, matches %s %t", format, text, format.Valid(text), pattern, pattern.MatchString(text))
			}
		}
		for text := range strings.FieldsSeq(tt.invalid) {
			if format.Valid(text) {
				t.Errorf("%s: %s is valid", format, text)
			}
		}
	}
}

// TestFormatsTakeLittleMemory checks texts of all formats. A value may have 100,000 of them, and a
// check that makes its tools each time takes more time and memory than all else with the value.
func TestFormatsTakeLittleMemory(t *testing.T) {
	for _, format := range []limits.Format{limits.IP, limits.IPv4OrNet, limits.Network, limits.Subnet, limits.HostName, limits.Key32, limits.Hex} {
		text := format.Example()
		if n := testing.AllocsPerRun(100, func() { format.Valid(text) }); n > 1 { // the error of a refused alternative
			t.Errorf("%s: %v allocations to check %q, want at most 1", format, n, text)
		}
	}
	if n := testing.AllocsPerRun(100, func() { limits.Network.Valid("fe80::1%eth0/129") }); n > 0 {
		t.Errorf("%v allocations to refuse a zone, want none", n)
	}
}

// TestCheck names each field outside of its limits, with its path.
func TestCheck(t *testing.T) {
	err := limits.Check(&l3.VRRPEntry{VrId: 256, Priority: 1, Interval: 5, IpAddresses: []string{"10.0.0.1", "x"}})
	want := "interface is required\nvr_id is 256; expected 1 to 255\ninterval is 5; expected 10 to 65535\n" +
		`ip_addresses[1] is "x"; expected an IP address, such as "10.0.0.1"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := limits.Check(&interfaces.Interface{Name: "a", Type: interfaces.Interface_VETH, IpAddresses: []string{"alloc:n"}}); err != nil {
		t.Error(err)
	}
}

package models

import (
	"net"
	"slices"
	"strings"
	"testing"
	"text/template"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// clientFuncs are what clients run the name templates with.
var clientFuncs = template.FuncMap{
	"ipnet": func(s string) map[string]any {
		if strings.HasPrefix(s, "alloc:") {
			return nil
		}
		_, n, err := net.ParseCIDR(s)
		if err != nil {
			return map[string]any{"IP": "<invalid>", "MaskSize": 0}
		}
		ones, _ := n.Mask.Size()
		return map[string]any{"IP": n.IP.String(), "MaskSize": ones}
	},
	"protoip": func(s string) string {
		switch ip := net.ParseIP(s); {
		case ip == nil:
			return "<invalid>"
		case ip.To4() != nil:
			return "IPv4"
		default:
			return "IPv6"
		}
	},
}

func TestNamesAreWhatTheTemplatesSay(t *testing.T) {
	all := map[*Model]*template.Template{}
	for _, m := range named() {
		parsed, err := template.New(m.Name()).Funcs(clientFuncs).Option("missingkey=error").Parse(m.NameTemplate())
		if err != nil {
			t.Fatalf("%s: %v", m.Name(), err)
		}
		all[m] = parsed
	}
	draw.Check(t, func(t *rapid.T) {
		for _, m := range named() {
			v := drawValue(t, m)
			var want strings.Builder
			if err := all[m].Execute(&want, v); err != nil {
				t.Fatal(err)
			}
			if got := m.name(v); got != want.String() {
				t.Errorf("%s: name %q, template says %q", m.Name(), got, want.String())
			}
		}
	})
}

// named are the models whose values have names.
func named() []*Model { return slices.DeleteFunc(BuiltIn().All(), (*Model).Singleton) }

func TestKeyFields(t *testing.T) {
	for name, want := range map[string][]string{
		"vpp.interfaces":       {"name"},
		"vpp.route":            {"outgoing_interface", "vrf_id", "dst_network", "next_hop_addr"},
		"vpp.nat.nat44-pool":   {"name", "vrf_id", "first_ip", "last_ip"},
		"vpp.nat.nat44-global": nil,
	} {
		if m, _ := BuiltIn().ByName(name); !slices.Equal(m.KeyFields(), want) {
			t.Errorf("%s: %q, want %q", name, m.KeyFields(), want)
		}
	}
}

func TestKeyFieldsAreAllThatTheNameIsMadeOf(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		for _, m := range named() {
			used := map[string]bool{}
			for _, f := range m.keyFields() {
				used[string(f.fd.Name())] = true
			}
			v := drawValue(t, m)
			stripped := proto.Clone(v).ProtoReflect()
			for i := range stripped.Descriptor().Fields().Len() {
				if fd := stripped.Descriptor().Fields().Get(i); !used[string(fd.Name())] {
					stripped.Clear(fd)
				}
			}
			if got, want := m.name(stripped.Interface()), m.name(v); got != want {
				t.Errorf("%s: name %q with key fields only, %q with all", m.Name(), got, want)
			}
		}
	})
}

package models_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
)

func TestConfigFieldsOfTheStructuredForm(t *testing.T) {
	for group, fields := range map[string]string{
		"vppConfig": "interfaces spans acls abfs bridgeDomains fibs xconnectPairs routes arps proxyArp ipscanNeighbor vrfs" +
			" l3xconnects dhcpProxies teibEntries VRRPEntry_list nat44Global dnat44s nat44Interfaces nat44Pools Nat44VrfTable_list" +
			" Nat44VrfRoute_list ipsecSpds ipsecSps ipsecSas ipsecTunnelProtections puntIpredirects puntTohosts puntExceptions" +
			" srv6Global srv6Localsids srv6Policies srv6Steerings ipfixGlobal ipfixFlowprobeParams ipfixFlowprobes Rule_list Peer_list DNSCache",
		"linuxConfig":    "interfaces arpEntries routes RuleChain",
		"netallocConfig": "ipAddresses",
	} {
		got, want := models.BuiltIn().ConfigFields(group), strings.Fields(fields)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q\nwant %q", group, got, want)
		}
		for _, field := range want {
			m, repeated, ok := models.BuiltIn().ByConfigField(group, field)
			if !ok || repeated == m.Singleton() {
				t.Errorf("%s.%s: %v, list %v, %v", group, field, m, repeated, ok)
				continue
			}
			if g, f := m.ConfigField(); g != group || f != field {
				t.Errorf("%s is at %s.%s, want %s.%s", m.Name(), g, f, group, field)
			}
		}
	}
	if got := models.BuiltIn().ConfigGroups(); !slices.Equal(got, []string{"linuxConfig", "netallocConfig", "vppConfig"}) {
		t.Errorf("groups %q", got)
	}
}

// What gRPC calls a field, the structured form understands too.
func TestConfigFieldsOfTheConfigurator(t *testing.T) {
	groups := (&configurator.Config{}).ProtoReflect().Descriptor().Fields()
	for i := range groups.Len() {
		group := groups.Get(i)
		for j := range group.Message().Fields().Len() {
			field := group.Message().Fields().Get(j)
			checkConfigField(t, string(group.Name()), string(field.Name()), field)
			checkConfigField(t, group.JSONName(), field.JSONName(), field)
		}
	}
}

func checkConfigField(t *testing.T, group, name string, field protoreflect.FieldDescriptor) {
	t.Helper()
	m, repeated, ok := models.BuiltIn().ByConfigField(group, name)
	if !ok || m.ProtoName() != string(field.Message().FullName()) || repeated != field.IsList() {
		t.Errorf("%s.%s: %v, list %v, %v; want %s, list %v", group, name, m, repeated, ok, field.Message().FullName(), field.IsList())
	}
}

func TestConfigFieldsThatAreNone(t *testing.T) {
	for _, tt := range [][2]string{
		{"vppConfig", "interface"}, {"vppConfig", "arpEntries"}, {"linuxConfig", "vrfs"}, {"linux", "routes"},
		{"", ""}, {"govppmuxConfig", "stats"}, {"vppConfig", ""}, {"vppConfig", "peer_list"},
	} {
		if m, _, ok := models.BuiltIn().ByConfigField(tt[0], tt[1]); ok {
			t.Errorf("%s.%s holds %s", tt[0], tt[1], m.Name())
		}
	}
	if got := models.BuiltIn().ConfigFields("noConfig"); len(got) != 0 {
		t.Errorf("fields of no group: %q", got)
	}
	stats, _ := models.BuiltIn().ByName("govppmux.stats")
	if group, field := stats.ConfigField(); group != "" || field != "" {
		t.Errorf("%s is at %s.%s", stats.Name(), group, field)
	}
}

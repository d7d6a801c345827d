package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/northbound/rest/counters"
	"github.com/keyplane/keyplane/northbound/rest/internal/details"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
	linuxif "github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	linuxl3 "github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp/abf"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/proto/ligato/vpp/wireguard"
)

// TestShapes compares the answer of each path that vpp-agent 3.5 has under /dump and of the
// statistics, field by field, with testdata/shapes. There, every field is set.
func TestShapes(t *testing.T) {
	for _, p := range details.Paths() {
		t.Run(p.Path, func(t *testing.T) {
			items := shapeItems(t, p.Path)
			if len(items) == 0 {
				t.Fatal("the test has no item for this path")
			}
			answer := httptest.NewRecorder()
			if err := p.Answer(answer, slices.Values(items)); err != nil {
				t.Fatal(err)
			}
			compareShape(t, p.Path, answer.Body.Bytes())
		})
	}
	readers := wholeReaders()
	for _, e := range readers.Endpoints() {
		if e.Path == "/metrics" || e.Path == "/health" || strings.Contains(e.Path, "{") {
			continue // texts of Prometheus, and models
		}
		t.Run(e.Path, func(t *testing.T) {
			answer := httptest.NewRecorder()
			e.Handle(answer, httptest.NewRequestWithContext(t.Context(), e.Method, e.Path, nil))
			compareShape(t, e.Path, answer.Body.Bytes())
		})
	}
}

// alwaysZero are the fields that no agent sets.
func alwaysZero() []string {
	return []string{"Salt", "Interface", "TotalDataSize", "vni", "mtu", "Link"}
}

// compareShape compares an answer with the one in testdata/shapes.
func compareShape(t *testing.T, path string, answer []byte) {
	t.Helper()
	file := filepath.Join("testdata", "shapes", strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-")+".json")
	if *update {
		if err := os.WriteFile(file, answer, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, expected := leaves(t, answer), leaves(t, want)
	for field, value := range expected {
		if has, ok := got[field]; !ok {
			t.Errorf("%s is missing; expected %v", field, value)
		} else if has != value {
			t.Errorf("%s is %v; expected %v", field, has, value)
		}
		name := field[strings.LastIndex(field, ".")+1:]
		if empty := slices.Contains([]string{"0", `""`, "false", "null", "{}", "[]"}, value); empty && !slices.Contains(alwaysZero(), name) {
			t.Errorf("%s is %s in the expected answer; expected a value", field, value)
		}
	}
	for field, value := range got {
		if _, ok := expected[field]; !ok {
			t.Errorf("%s is new: %v", field, value)
		}
	}
}

// leaves returns the fields of a JSON text by their paths.
func leaves(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out := map[string]string{}
	addLeaves(out, "", v)
	return out
}

func addLeaves(to map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			for name, one := range v {
				addLeaves(to, at+"."+name, one)
			}
			return
		}
	case []any:
		if len(v) > 0 {
			for i, one := range v {
				addLeaves(to, fmt.Sprintf("%s[%d]", at, i), one)
			}
			return
		}
	}
	text, _ := json.Marshal(v) // it came from JSON
	to[at] = string(text)
}

// shapeItems returns the items that a path shows, as its descriptor reads them back.
func shapeItems(t *testing.T, path string) []details.Item {
	t.Helper()
	item := func(v proto.Message, link, meta, more string) details.Item {
		whole(v.ProtoReflect(), link, 6)
		return details.Item{Value: v, Meta: json.RawMessage(meta), Details: json.RawMessage(more)}
	}
	vppInterface := func(kind interfaces.Interface_Type, link string) details.Item {
		i := item(&interfaces.Interface{}, link, `{"SwIfIndex": 3, "Parent": 2, "InternalName": "tap0", "DevType": "virtio", "TAPHostIfName": "tap-1"}`,
			`{"sub_sw_if_index": 2, "l2_address": "NDwAAAAB", "is_admin_state_up": true, "is_link_state_up": true, "link_duplex": 2, "link_mtu": 9206,
			"mtu": [1450, 1451, 1452, 1453], "link_speed": 1000000, "sub_id": 7, "tag": "if1", "vrf_ipv4": 1, "vrf_ipv6": 4, "pci": 259,
			"dhcp": {"Client": {"SwIfIndex": 3, "Hostname": "h", "ID": "id", "WantDhcpEvent": true, "SetBroadcastFlag": true, "PID": 9},
			"Lease": {"SwIfIndex": 3, "State": 2, "Hostname": "h", "IsIPv6": true, "MaskWidth": 24, "HostAddress": "10.0.0.9", "RouterAddress": "10.0.0.1", "HostMac": "02:00:00:00:00:01"}}}`)
		i.Value.(*interfaces.Interface).Type = kind
		return i
	}
	rule := func(macip bool) details.Item {
		i := item(&acl.ACL{}, "", `{"Index": 5}`, `{"acl_tag": "acl1"}`)
		for _, r := range i.Value.(*acl.ACL).Rules {
			if macip {
				r.IpRule = nil
			} else {
				r.MacipRule = nil
			}
		}
		return i
	}
	all := map[string][]details.Item{
		"abf": {item(&abf.ABF{}, "", "null", "null")}, "acl/ip": {rule(false), rule(true)}, "acl/macip": {rule(true), rule(false)},
		"interfaces":          {vppInterface(interfaces.Interface_TAP, "tap")},
		"interfaces/loopback": {vppInterface(interfaces.Interface_SOFTWARE_LOOPBACK, "none"), vppInterface(interfaces.Interface_TAP, "tap")},
		"interfaces/ethernet": {vppInterface(interfaces.Interface_DPDK, "none")}, "interfaces/memif": {vppInterface(interfaces.Interface_MEMIF, "memif")},
		"interfaces/tap": {vppInterface(interfaces.Interface_TAP, "tap")}, "interfaces/afpacket": {vppInterface(interfaces.Interface_AF_PACKET, "afpacket")},
		"interfaces/vxlan": {vppInterface(interfaces.Interface_VXLAN_TUNNEL, "vxlan")},
		"nat/global":       {item(&nat.Nat44Global{}, "", "null", "null")}, "nat/dnat": {item(&nat.DNat44{}, "", "null", "null")},
		"nat/interfaces": {item(&nat.Nat44Interface{}, "", "null", "null"), item(&nat.Nat44Global{}, "", "null", "null")},
		"nat/pools":      {item(&nat.Nat44AddressPool{}, "", "null", "null"), item(&nat.Nat44Global{}, "", "null", "null")},
		"bd":             {item(&l2.BridgeDomain{}, "", `{"ID": 6}`, "null")}, "fib": {item(&l2.FIBEntry{}, "", `{"Bridge": 6, "Interface": 3}`, "null")},
		"xc": {item(&l2.XConnectPair{}, "", `{"Receive": 3}`, `{"transmit_interface_sw_if_idx": 4}`)},
		"routes": {item(&l3.Route{}, "", "null", `{"TableName": "ten", "OutgoingIfIdx": 3, "IsIPv6": true, "Afi": 1, "IsLocal": true, "IsUDPEncap": true, "IsUnreach": true,
			"IsProhibit": true, "IsResolveHost": true, "IsResolveAttached": true, "IsDvr": true, "IsSourceLookup": true, "NextHopID": 8, "RpfID": 9,
			"LabelStack": [{"IsUniform": true, "Label": 100, "TTL": 64, "Exp": 1}]}`)},
		"arps":                {item(&l3.ARPEntry{}, "", "null", `{"SwIfIndex": 3}`)},
		"proxyarp/interfaces": {item(&l3.ProxyARP{}, "", "null", `{"Interfaces": {"name": 3}}`)}, "proxyarp/ranges": {item(&l3.ProxyARP{}, "", "null", "null")},
		"ipscanneigh": {item(&l3.IPScanNeighbor{}, "", "null", "null")}, "vrrps": {item(&l3.VRRPEntry{}, "", `{"VrrpIndex": 1}`, "null")},
		"ipsec/spds": {item(&ipsec.SecurityPolicyDatabase{}, "", "null", "null")}, "ipsec/sps": {item(&ipsec.SecurityPolicy{}, "", "null", "null")},
		"ipsec/sas": {item(&ipsec.SecurityAssociation{}, "", "null",
			`{"SaID": 1, "IfIdx": 3, "CryptoKeyLen": 16, "IntegKeyLen": 20, "SeqOutbound": 5, "LastSeqInbound": 6, "ReplayWindow": 64}`)},
		"punt/sockets": {item(&punt.ToHost{}, "", "null", "null")}, "wireguard/peers": {item(&wireguard.Peer{}, "", `{"Index": 1}`, "null")},
		"/dump/linux/v2/interfaces": {item(&linuxif.Interface{}, "tap", `{"LinuxIfIndex": 6, "HostIfName": "vpp1", "VrfMasterIf": "red"}`,
			`{"parent_index": 5, "master_index": 4, "oper_state": 6, "flags": 69699, "encapsulation": "ether", "num_rx_queue": 1, "num_tx_queue": 2, "tx_queue_len": 500, "mtu": 1500}`)},
		"/dump/linux/v2/routes": {item(&linuxl3.Route{}, "", `{"NS": {"Dev": 1, "Ino": 2}, "Route": {"Link": 6, "Scope": 253, "Protocol": 151, "Table": 254}}`, "null")},
		"/dump/linux/v2/arps":   {item(&linuxl3.ARPEntry{}, "", `{"NS": {"Dev": 1, "Ino": 2}, "Neighbour": {"Link": 7, "IP": "10.1.1.1"}}`, "null")},
	}
	return all[strings.TrimPrefix(path, "/dump/vpp/v2/")]
}

// whole sets each field of a message. Of alternatives it sets the one called link, or the first.
func whole(m protoreflect.Message, link string, depth int) {
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if oneof := fd.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() && string(fd.Name()) != link && (link != "" || m.WhichOneof(oneof) != nil) {
			continue
		}
		one := func() protoreflect.Value {
			if fd.Message() != nil {
				v := m.NewField(fd)
				if fd.IsList() {
					v = m.NewField(fd).List().NewElement()
				}
				if depth > 0 {
					whole(v.Message(), "", depth-1)
				}
				return v
			}
			return scalar(fd)
		}
		if !fd.IsList() {
			m.Set(fd, one())
			continue
		}
		m.Mutable(fd).List().Append(one())
	}
}

// scalar returns a value that is not zero: texts are the name of the field.
func scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	n := int64(fd.Number()) + 10
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(values.Len() - 1).Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(fd.Name()))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n)
	default:
		panic(fmt.Sprintf("%s is of a kind that the test does not know: %s", fd.FullName(), fd.Kind()))
	}
}

// wholeReaders have all counters, with every field set.
func wholeReaders() counters.Readers {
	one := counts.Method{Name: "Update", Count: 2, Total: 3, Avg: 1.5, Min: 1, Max: 2}
	texts := map[string]string{"show runtime": "nodes", "show buffers": "pools", "show node counters": "reasons", "show memory main-heap": "heap"}
	object := func(context.Context) (any, error) {
		return map[string]any{"threads": []any{map[string]any{"id": 1}}}, nil
	}
	return counters.Readers{
		Memory: object, Runtime: object, NodeCounters: object,
		Command: func(_ context.Context, line string) (string, error) { return texts[line], nil },
		LinuxInterfaces: func(context.Context) ([]counts.LinuxInterfaceStats, error) {
			return []counts.LinuxInterfaceStats{{
				Name: "if1", Type: int32(linuxif.Interface_TAP_TO_VPP), Index: 6, HostName: "vpp1",
				RxPackets: 1, TxPackets: 2, RxBytes: 3, TxBytes: 4, RxErrors: 5, TxErrors: 6, RxDropped: 7, TxDropped: 8,
			}}, nil
		},
		Requests: func() counts.MuxStats {
			return counts.MuxStats{
				ChannelsCreated: 1, ChannelsOpen: 2, RequestsSent: 3, RequestsDone: 4, RequestsFail: 5, RequestReplies: 6,
				AllMessages: one, Messages: []counts.Method{one}, Errors: []counts.MessageErrors{{Name: "show_version", Count: 1}},
			}
		},
		Configurator: func() counts.ConfiguratorStats {
			return counts.ConfiguratorStats{AllOperations: one, Operations: []counts.Method{one}}
		},
	}
}

// Each file of the folder belongs to a path.
func TestShapesHaveNoOtherFiles(t *testing.T) {
	known := map[string]bool{}
	add := func(path string) { known[strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-")+".json"] = true }
	for _, p := range details.Paths() {
		add(p.Path)
	}
	for _, e := range wholeReaders().Endpoints() {
		add(e.Path)
	}
	files, err := os.ReadDir(filepath.Join("testdata", "shapes"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s belongs to no path; expected one of %v", f.Name(), slices.Sorted(maps.Keys(known)))
		}
	}
}

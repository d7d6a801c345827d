package models

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// What decodes leads back to its key; what does not gives one short text, the
// same every time, that is not protojson's.
func FuzzDecode(f *testing.F) {
	for _, seed := range []struct{ key, data string }{
		{"config/linux/l3/v2/route/10.1.3.0/24/veth1", `{"dst_network":"10.1.3.0/24","outgoing_interface":"veth1"}`},
		{"config/linux/l3/v2/route/10.1.3.0/24/veth1", `{"dst_network":"10.1.4.0/24"}`},
		{"config/linux/interfaces/v2/interface/v", `{"name":"v","type":1,"veth":{"peer_if_name":"w"},"ip_addresses":["10.0.0.1/24",null]}`},
		{"config/linux/interfaces/v2/interface/v", `{"name":"v","tap":{},"veth":null,"vrf_dev":{}}`},
		{"config/vpp/acls/v2/acl/a", `{"name":"a","rules":[{"ip_rule":{"tcp":{"tcp_flags_mask":"1e1"}}},[]]}`},
		{"config/vpp/nat/v2/nat44-global", `{"forwarding":"true","natInterfaces":[{"name":"\ud800"}]}`},
		{"metrics/govppmux/v0/stats", `{"channels_created":"18446744073709551615","requestsSent":-0}`},
		{"config/vpp/v2/interfaces/x", "{\"a\":\xff}"},
		{"config/vpp/v2/interfaces/x", "{\"\\u0061\":1,\"a\":"},
	} {
		f.Add(seed.key, []byte(seed.data))
	}
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		v, err := BuiltIn().Decode(key, data)
		if err != nil {
			checkError(t, key, data, err)
			return
		}
		m, _, _ := BuiltIn().ByKey(key)
		again, err := m.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := BuiltIn().Decode(key, again); err != nil || !proto.Equal(v, back) {
			t.Fatalf("%s from %s: %v, %v", again, data, back, err)
		}
	})
}

func checkError(t *testing.T, key string, data []byte, err error) {
	t.Helper()
	if _, again := BuiltIn().Decode(key, data); again == nil || again.Error() != err.Error() {
		t.Fatalf("first %v\nthen %v", err, again)
	}
	if text := err.Error(); len(text) > 3000 || !utf8.ValidString(text) || bytes.ContainsAny([]byte(text), "\n\x00") {
		t.Fatalf("unreadable: %q", text)
	}
	m, _, ok := BuiltIn().ByKey(key)
	if !ok {
		return
	}
	refused := protojson.Unmarshal(data, m.New())
	if refused != nil && bytes.Contains([]byte(err.Error()), []byte(refused.Error())) {
		t.Fatalf("not understood: %v", err)
	}
}

// Each key is of at most one model, and that one agrees.
func FuzzByKey(f *testing.F) {
	for _, m := range BuiltIn().All() {
		f.Add(m.Prefix())
		f.Add(m.KeyOf("a/b"))
	}
	f.Fuzz(func(t *testing.T, key string) {
		found, name, ok := BuiltIn().ByKey(key)
		for _, m := range BuiltIn().All() {
			got, is := m.NameOf(key)
			if is != (ok && m == found) || is && got != name {
				t.Fatalf("%q: by key %v %q %v, but %s says %q, %v", key, found, name, ok, m.Name(), got, is)
			}
		}
	})
}

package models

import (
	"slices"
	"strings"
	"testing"
)

func TestControlCharactersAreRefused(t *testing.T) {
	const key = "config/linux/interfaces/v2/interface/veth1"
	for name, tt := range map[string]struct {
		data   string
		fields []string
	}{
		"none":              {`{"name":"veth1","ip_addresses":["10.0.0.1/24"]}`, nil},
		"letters of others": {`{"name":"veth1","host_if_name":"wän\u00e9\\"}`, nil},
		"NUL":               {`{"name":"veth1","host_if_name":"a\u0000b"}`, []string{"host_if_name"}},
		"ESC":               {`{"name":"veth1","host_if_name":"\u001b[2J"}`, []string{"host_if_name"}},
		"line feed":         {`{"name":"veth1","namespace":{"type":"NSID","reference":"red\nlevel=ERROR"}}`, []string{"namespace.reference"}},
		"DEL and C1":        {"{\"name\":\"veth1\",\"ip_addresses\":[\"a\x7f\",\"b\",\"c\xc2\x9b\"]}", []string{"ip_addresses[0]", "ip_addresses[2]"}},
		"one of":            {`{"name":"veth1","veth":{"peer_if_name":"\t"}}`, []string{"veth.peer_if_name"}},
	} {
		m, err := BuiltIn().Decode(key, []byte(tt.data))
		if got := Fields(err); !slices.Equal(got, tt.fields) || m == nil {
			t.Errorf("%s: fields %v of %v, want %v", name, got, err, tt.fields)
		}
		if err != nil && (!strings.Contains(err.Error(), "expected text without control characters") || strings.ContainsAny(err.Error(), "\x00\x1b\x7f\n\t\u009b")) {
			t.Errorf("%s: the error is %q", name, err)
		}
	}
}

func TestControlCharactersOfASecretAreNotShown(t *testing.T) {
	_, err := BuiltIn().Decode("config/vpp/v2/interfaces/m", []byte(`{"name":"m","memif":{"secret":"hush\u0007"}}`))
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("the error is %v", err)
	}
}

package nodes

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestMetadataFields(t *testing.T) {
	type meta struct {
		Index    uint32 `json:"SwIfIndex"`
		Name     string
		Addr     netip.Addr
		Peers    []string
		Absent   string
		internal int
	}
	full := meta{3, "tap0", netip.MustParseAddr("10.0.0.1"), []string{"a", "b"}, "", 7}
	want := map[string][]string{"SwIfIndex": {"3"}, "Name": {"tap0"}, "Addr": {"10.0.0.1"}, "Peers": {"a", "b"}}
	for _, test := range []struct {
		meta any
		want map[string][]string
	}{
		{nil, nil}, {(*meta)(nil), nil}, {meta{}, nil}, {full, want}, {&full, want},
		{7, map[string][]string{"value": {"7"}}}, {0, map[string][]string{"value": {"0"}}}, {"", nil},
	} {
		if got := metadataFields(test.meta); !reflect.DeepEqual(got, test.want) {
			t.Errorf("of %#v: %v, want %v", test.meta, got, test.want)
		}
	}
}

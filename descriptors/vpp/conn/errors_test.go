package conn_test

import (
	"bytes"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// TestRefusalsHideSecrets: what was asked is shown, but for what nobody is to see.
func TestRefusalsHideSecrets(t *testing.T) {
	key := bytes.Repeat([]byte{77}, 32)
	for _, request := range []api.Message{
		&memif.MemifCreateV2{ID: 4711, Secret: "77 77"},
		&wireguard.WireguardInterfaceCreate{Interface: wireguard.WireguardInterface{Port: 4711, PrivateKey: key}},
	} {
		text := (&conn.Refusal{Request: request, Retval: int32(api.INVALID_VALUE)}).Error()
		if strings.Contains(text, "77 77") || !strings.Contains(text, "4711") || !strings.Contains(text, request.GetMessageName()) {
			t.Errorf("it says %q", text)
		}
	}
	if key[0] != 77 {
		t.Error("the request has changed")
	}
}

// TestRefusalsNameTheirObject: the text has the message, the fields that identify its object, and
// VPP's error, and no other field.
func TestRefusalsNameTheirObject(t *testing.T) {
	prefix, err := ip_types.ParsePrefix("10.1.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	const refused = ": VPPApiError: Invalid value (-7)"
	for want, request := range map[string]api.Message{
		"ip_route_add_del(table_id=7 prefix=10.1.0.0/16)": &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{
			TableID: 7, StatsIndex: 3, Prefix: prefix, NPaths: 1, Paths: []fib_types.FibPath{{SwIfIndex: 4, Weight: 1}},
		}},
		"memif_create_v2(id=4 socket_id=1)": &memif.MemifCreateV2{ID: 4, SocketID: 1, RingSize: 1024, Secret: "none"},
		"tap_create_v3(id=1 host_if_name=tt1 tag=agent@t1)": &tapv2.TapCreateV3{
			ID: 1, UseRandomMac: true, HostIfName: "tt1", Tag: "agent@t1\x00",
		},
		"sw_interface_dump": &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)},
		"acl_add_replace(acl_index=2 tag=web)": &acl.ACLAddReplace{ACLIndex: 2, Tag: "web", Count: 1, R: []acl_types.ACLRule{
			{Proto: 6},
		}},
	} {
		if got := (&conn.Refusal{Request: request, Retval: int32(api.INVALID_VALUE)}).Error(); got != want+refused {
			t.Errorf("it says %q, want %q", got, want+refused)
		}
	}
}

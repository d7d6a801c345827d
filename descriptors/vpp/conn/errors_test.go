package conn_test

import (
	"bytes"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memif"
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

package conn

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/internal/vppsim"
)

// TestEventsEndWithTheConnection: what has come but is not read as the connection ends is
// dropped, events as well as answers: an event says something to who has the answer before it.
func TestEventsEndWithTheConnection(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	sim, err := vppsim.New(vppsim.Options{Socket: socket})
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Kill()
	c, err := Dial(t.Context(), socket, "test")
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	c.OnEvent(&vppif.SwInterfaceEvent{}, func([]byte) { taken++ })
	event := binary.BigEndian.AppendUint16(nil, c.kindOf(&vppif.SwInterfaceEvent{}).id)
	c.dispatch(event)
	c.Close(errors.New("broken pipe"))
	c.dispatch(event)
	if taken != 1 {
		t.Errorf("%d events were taken, want the one before the end", taken)
	}
}

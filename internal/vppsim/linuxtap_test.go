package vppsim_test

import (
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/tapv2"

	"github.com/keyplane/keyplane/internal/vppsim"
)

// The kernel closes what a killed VPP has open, and its TAPs are gone at once.
func TestTAPsEndWithVPP(t *testing.T) {
	there := map[string]bool{}
	socket := filepath.Join(t.TempDir(), "api.sock")
	sim, err := vppsim.New(vppsim.Options{
		Socket: socket,
		TAP: func(name string) (remove func(), err error) {
			there[name] = true
			return func() { delete(there, name) }, nil
		},
	})
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	var r tapv2.TapCreateV3Reply
	if err := dial(t, socket).Call(t.Context(), &tapv2.TapCreateV3{HostIfName: "host-side"}, &r); err != nil || !there["host-side"] {
		t.Fatalf("%v, there are %v", err, there)
	}
	sim.Kill()
	if len(there) > 0 {
		t.Errorf("after the end of VPP there are %v", there)
	}
	if text := sim.Show("show interface"); strings.Contains(text, "tap0") {
		t.Errorf("a VPP that has ended has\n%s", text)
	}
}

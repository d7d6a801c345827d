package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// whatToTry is printed when the network is complete. Its commands can be copied to another
// terminal in the same folder. The tests run them unchanged.
func whatToTry() string {
	text := strings.NewReplacer("BIN", binDir(), "HOME", home).Replace(tryText)
	if _, err := exec.LookPath("ip"); err == nil {
		text += strings.ReplaceAll(healText, "BIN", binDir())
	}
	return text + "\n  Ctrl-C ends it and removes the network.\n\n"
}

const tryText = `
The network stands. In another terminal, in this folder:

  look at it, and see an echo cross the pair and the route
    BIN/first-light show
    BIN/first-light ping red 192.0.2.1

  ask the agent what there is, and why something is as it is
    BIN/agentctl --socket HOME/agent.sock values
    BIN/agentctl --socket HOME/agent.sock explain config/linux/l3/v2/route/192.0.2.0/24/red-eth

  edit it, save, and watch it follow here
    HOME/network/network.yaml
    HOME/network/vpp.yaml      (a simulated VPP: it keeps and shows what it is told)

  put a route into the agent's own store, and delete it again
    BIN/agentctl --socket HOME/agent.sock kvdb put config/linux/l3/v2/route/198.51.100.0/24/red-eth '{"outgoing_interface":"red-eth","scope":"GLOBAL","dst_network":"198.51.100.0/24","gw_addr":"10.77.0.2"}'
    BIN/agentctl --socket HOME/agent.sock kvdb del config/linux/l3/v2/route/198.51.100.0/24/red-eth
`

const healText = `
  break it by hand, and watch it being mended
    BIN/first-light exec red ip link del eth0
`

// binDir returns the folder of the programs, as short as it can be typed here.
func binDir() string {
	self, err := os.Executable()
	if err != nil {
		return ".bin"
	}
	dir := filepath.Dir(self)
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, dir); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return dir
}

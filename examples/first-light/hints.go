package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A hint is one thing to try in another terminal. The tests run its command unchanged.
type hint struct {
	what    string // one word in the margin; empty: as before
	command string // for a shell in the folder of .run; it may have several lines
	note    string // beside the command
}

// hints returns what to try when the network is complete.
func hints() []hint {
	const ctl, light = "BIN/agentctl ", "BIN/first-light "
	all := []hint{
		{"", "export AGENTCTL_SOCKET=HOME/agent.sock", "first: the agent to ask"},
		{"look", light + "show", "the network inside"},
		{"", light + "ping red 192.0.2.1", "an echo by the route"},
		{"", ctl + "values", "each item with its state"},
		{"why", ctl + "explain config/linux/l3/v2/route/192.0.2.0/24/red-eth", ""},
		{"edit", "${EDITOR:-vi} HOME/network/network.yaml", "or vpp.yaml; then save"},
		{"", "sed -i s,10.77.0.1/,10.77.0.9/, HOME/network/network.yaml", ""},
		{"put", ctl + "kvdb put config/vpp/v2/interfaces/spare \\\n" +
			`  '{"name":"spare","type":"SOFTWARE_LOOPBACK","enabled":true}'`, ""},
		{"delete", ctl + "kvdb del config/vpp/v2/interfaces/spare", ""},
		{"enter", light + "exec red", "a shell; exit leaves it"},
	}
	if _, err := exec.LookPath("ip"); err == nil {
		all = append(all, hint{"break", light + "exec red ip link del eth0", "the agent repairs it"})
	}
	names := strings.NewReplacer("BIN", binDir(), "HOME", home)
	for i := range all {
		all[i].command = names.Replace(all[i].command)
	}
	return all
}

// whatToTry is printed when the network is complete. It fits on a terminal of 80 columns and
// 24 lines, so nothing of it scrolls away.
func whatToTry() string {
	var b strings.Builder
	b.WriteString("\nThe network stands: namespaces red and blue, and a simulated VPP.\n" +
		"In another terminal, in this folder:\n\n")
	for _, h := range hints() {
		first, rest, more := strings.Cut(h.command, "\n")
		line := pad(h.what, 8) + first
		if h.note != "" {
			line = pad(line, 52) + "# " + h.note
		}
		b.WriteString("  " + line + "\n")
		if more {
			b.WriteString("  " + pad("", 8) + rest + "\n")
		}
	}
	b.WriteString("\nThis terminal shows what the agent does, one line for each operation.\n" +
		"Ctrl-C ends the agent and removes the network. Your files stay in " + home + ".\n\n")
	return b.String()
}

// pad fills text with spaces up to the width, at least with one.
func pad(text string, width int) string {
	if len(text) < width {
		return text + strings.Repeat(" ", width-len(text))
	}
	return text + " "
}

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

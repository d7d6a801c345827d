package vpp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/vlib"
)

// A Loaded is a plugin that VPP has loaded.
type Loaded struct{ Name, Version, Description string }

// loadedWithin is how long VPP may take to say what it has loaded.
const loadedWithin = time.Second

// loaded asks VPP which plugins it has. There is no message for that: its command line says it.
func (p *Plugin) loaded(ctx context.Context) ([]Loaded, error) {
	ctx, cancel := context.WithTimeout(ctx, loadedWithin)
	defer cancel()
	const command = "show plugins"
	reply := &vlib.CliInbandReply{}
	if err := p.manager.Call(ctx, &vlib.CliInband{Cmd: command}, reply); err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return loadedIn(reply.Reply), nil
}

// loadedIn reads lines of "  1. memif_plugin.so   25.10.0-release   Packet Memory Interface" (VPP
// src/vlib/unix/plugin.c, vlib_plugins_show_cmd_fn). Others, of which some come first, are none.
func loadedIn(text string) (out []Loaded) {
	for line := range strings.Lines(text) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ".")
		name, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
		version, description, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if number != "" && strings.Trim(number, "0123456789") == "" && name != "" {
			out = append(out, Loaded{name, version, strings.TrimSpace(description)})
		}
	}
	return out
}

package main

import (
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// vppInfo is how VPP is, as programs are told.
func vppInfo(plane *vpp.Plugin) func() wire.VPP {
	return func() wire.VPP {
		i := plane.Info()
		out := wire.VPP{
			Connected: i.Connected, Since: i.Since, Socket: i.Socket, Version: i.About.Version, BuildDate: i.About.BuildDate,
			PID: i.About.PID, Messages: i.About.Messages, Connections: i.Connections, LastErrorAt: i.ErrAt,
		}
		if i.Err != nil {
			out.LastError = i.Err.Error()
		}
		for _, c := range i.Capabilities {
			out.Capabilities = append(out.Capabilities, wire.Capability(c))
		}
		return out
	}
}

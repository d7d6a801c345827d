package agent

import (
	"context"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// vppInfo returns a function that reports the state of VPP to programs.
func vppInfo(plane *vpp.Plugin) func(context.Context) wire.VPP {
	return func(ctx context.Context) wire.VPP {
		i := plane.Info(ctx)
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
		for _, l := range i.Loaded {
			out.Plugins = append(out.Plugins, wire.Plugin(l))
		}
		if i.LoadedErr != nil {
			out.NoPlugins = i.LoadedErr.Error()
		}
		return out
	}
}

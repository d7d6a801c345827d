// Package vpp has the command vpp of agentctl: the VPP that the agent programs.
package vpp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Command returns the command about VPP. By itself it prints its help.
func Command(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vpp",
		Short: "Shows the state of VPP",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(info(s))
	return cmd
}

// info returns the command that prints connection, version, features and plugins of VPP.
func info(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Prints connection, version, features and plugins of VPP",
		Long: "Info prints whether and since when VPP is connected, its version and plugins, and the VPP message that each feature uses.\n" +
			"Values that need a message which this VPP lacks are UNIMPLEMENTED.",
		Args: session.ExpectArgs(),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		var v wire.VPP
		if err := s.Get(ctx, "/vpp/info", nil, &v); err != nil {
			return err
		}
		return f.Write(s.Out, v, func(out io.Writer) error { return infoTable(out, v) })
	})
	return cmd
}

// infoTable prints one property per line, then the features and plugins. Unknown properties
// are left out.
func infoTable(out io.Writer, v wire.VPP) error {
	state := "not connected"
	if v.Connected {
		state = "connected"
	}
	ago := func(t time.Time) string { return show.Short(time.Since(t)) + " ago" }
	lines := [][2]string{{"VPP", state}, {"Since", ago(v.Since)}, {"Socket", v.Socket}, {"Connections", fmt.Sprint(v.Connections)}}
	if v.Since.IsZero() {
		lines[1][1] = ""
	}
	if v.Version != "" {
		lines = append(lines, [2]string{"Version", v.Version}, [2]string{"Built", v.BuildDate},
			[2]string{"Process", fmt.Sprint(v.PID)}, [2]string{"Messages", fmt.Sprint(v.Messages)})
	}
	if v.LastError != "" {
		lines = append(lines, [2]string{"Last error", v.LastError + ", " + ago(v.LastErrorAt)})
	}
	if v.NoPlugins != "" {
		lines = append(lines, [2]string{"Plugins", "unknown: " + v.NoPlugins})
	}
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "%-12s %s\n", l[0]+":", show.Line(l[1])); err != nil {
			return err
		}
	}
	return errors.Join(capabilityTable(out, v.Capabilities), pluginTable(out, v.Plugins))
}

// capabilityTable prints for each feature whether this VPP supports it, and by which
// message.
func capabilityTable(out io.Writer, all []wire.Capability) error {
	if len(all) == 0 {
		return nil
	}
	t := show.NewTable(out, "FEATURE", "SUPPORTED", "MESSAGE")
	for _, c := range all {
		supported := "no"
		if c.Has {
			supported = "yes"
		}
		t.Row(c.Feature, supported, c.Message)
	}
	return t.End()
}

// pluginTable prints the plugins that VPP has loaded.
func pluginTable(out io.Writer, all []wire.Plugin) error {
	if len(all) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	t := show.NewTable(out, "PLUGIN", "VERSION", "DESCRIPTION")
	for _, p := range all {
		t.Row(p.Name, p.Version, p.Description)
	}
	return t.End()
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

func (a *app) vpp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vpp",
		Short: "Looks at VPP",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.vppInfo())
	return cmd
}

func (a *app) vppInfo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Says whether VPP is connected, which one it is, and what it can do",
		Long: "Info says whether VPP is connected, since when, which version it is, which message of VPP each feature uses, and which plugins\n" +
			"it has. What needs a message that VPP has not is UNIMPLEMENTED.",
		Args: want(),
	}
	f := formatFlag(cmd)
	cmd.RunE = a.looking(func(ctx context.Context, _ []string) error {
		var v wire.VPP
		if err := a.get(ctx, "/vpp/info", nil, &v); err != nil {
			return err
		}
		return f.write(a.Out, v, func(out io.Writer) error { return vppTable(out, v) })
	})
	return cmd
}

func vppTable(out io.Writer, v wire.VPP) error {
	state := "not connected"
	if v.Connected {
		state = "connected"
	}
	ago := func(t time.Time) string { return short(time.Since(t)) + " ago" }
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
		lines = append(lines, [2]string{"Plugins", "not known: " + v.NoPlugins})
	}
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "%-12s %s\n", l[0]+":", oneLine(l[1])); err != nil {
			return err
		}
	}
	return errors.Join(capabilityTable(out, v.Capabilities), pluginTable(out, v.Plugins))
}

func capabilityTable(out io.Writer, all []wire.Capability) error {
	if len(all) == 0 {
		return nil
	}
	t := newTable(out, "FEATURE", "THERE", "MESSAGE")
	for _, c := range all {
		there := "no"
		if c.Has {
			there = "yes"
		}
		t.row(c.Feature, there, c.Message)
	}
	return t.end()
}

func pluginTable(out io.Writer, all []wire.Plugin) error {
	if len(all) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	t := newTable(out, "PLUGIN", "VERSION", "DESCRIPTION")
	for _, p := range all {
		t.row(p.Name, p.Version, p.Description)
	}
	return t.end()
}

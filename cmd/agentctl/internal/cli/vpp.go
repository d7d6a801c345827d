package cli

import (
	"context"
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
		Long: "Info says whether VPP is connected, since when, which version it is, and which message of VPP each feature uses.\n" +
			"What needs a message that VPP has not is UNIMPLEMENTED.",
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
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "%-12s %s\n", l[0]+":", oneLine(l[1])); err != nil {
			return err
		}
	}
	if len(v.Capabilities) == 0 {
		return nil
	}
	t := newTable(out, "FEATURE", "THERE", "MESSAGE")
	for _, c := range v.Capabilities {
		there := "no"
		if c.Has {
			there = "yes"
		}
		t.row(c.Feature, there, c.Message)
	}
	return t.end()
}

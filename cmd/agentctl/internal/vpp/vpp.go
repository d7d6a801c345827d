// Package vpp has the command vpp of agentctl: the VPP that the agent programs.
package vpp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Command returns the command about VPP. By itself it prints its help.
func Command(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:     "vpp",
		Short:   "Shows the state of VPP, and runs its commands",
		Example: "  agentctl vpp info\n  agentctl vpp cli show interface",
	})
	cmd.AddCommand(info(s), line(s))
	return cmd
}

// info returns the command that prints connection, version, features and plugins of VPP.
func info(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "info",
		Aliases: []string{"i"},
		Short:   "Prints connection, version, features and plugins of VPP",
		Long: "Info prints version and configuration of VPP, as its command line has them, whether and since when it is connected, its plugins,\n" +
			"and the VPP message that each feature uses.\n" +
			"Values that need a message which this VPP lacks are UNIMPLEMENTED.",
		Example: "  agentctl vpp info\n  agentctl vpp info -f '{{.Version}}'",
		Args:    session.ExpectArgs(),
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		var v wire.VPP
		if err := s.Get(ctx, "/vpp/info", nil, &v); err != nil {
			return err
		}
		return f.Write(s.Out, v, func(out io.Writer) error {
			if err := ownWords(ctx, s, out, v.Connected); err != nil {
				return err
			}
			return infoTable(out, v)
		})
	})
	return cmd
}

// ownWords prints what VPP says of itself, as vpp-agent 3.5. It prints nothing if VPP is away, or if the user may not
// run lines of its command line.
func ownWords(ctx context.Context, s *session.Session, out io.Writer, connected bool) error {
	if !connected {
		return nil
	}
	for _, block := range [][2]string{{"VERSION:", "show version verbose"}, {"CONFIG:", "show version cmdline"}} {
		answer, err := run(ctx, s, block[1])
		if err != nil {
			return nil //nolint:nilerr // the rest of the answer needs no command line
		}
		if _, err := io.WriteString(out, block[0]+"\n"+output(fmt.Sprint(answer))+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// run runs a line of VPP's command line.
func run(ctx context.Context, s *session.Session, line string) (answer any, err error) {
	body, err := json.Marshal(wire.Command{Line: line})
	if err != nil {
		return nil, err
	}
	return answer, s.Request(ctx, http.MethodPost, "/vpp/command", nil, body, &answer)
}

// line returns the command that runs a line of VPP's command line.
func line(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cli COMMAND...",
		Aliases: []string{"c"},
		Short:   "Runs a line of VPP's command line",
		Long: "Cli runs a line of VPP's command line, such as show interface, and prints the output of VPP. VPP reports an unknown command as\n" +
			"output too, so the exit code is that of the request. An argument that begins with - comes after --.",
		Example: "  agentctl vpp cli show interface\n  agentctl vpp cli -- show trace max 10",
		Args: func(_ *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, " ")) == "" {
				return errors.New("COMMAND is missing: expected a line such as show version")
			}
			return nil
		},
	}
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
		answer, err := run(ctx, s, strings.Join(args, " "))
		if err != nil {
			return err
		}
		return f.Write(s.Out, answer, func(out io.Writer) error {
			_, err := io.WriteString(out, output(fmt.Sprint(answer)))
			return err
		})
	})
	return cmd
}

// output returns what VPP printed, with a line feed at the end. VPP's lines end as those of
// a terminal, with a carriage return, and some have tabs between their columns, which a terminal
// shows as spaces. All other control characters may be commands to the terminal, and are escaped.
func output(text string) string {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if text == "" {
		return ""
	}
	columns := strings.Split(text, "\t")
	for i := range columns {
		columns[i] = printable.Text(columns[i])
	}
	return strings.Join(columns, "\t") + "\n"
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
		if _, err := fmt.Fprintf(out, "%-12s %s\n", l[0]+":", show.Remote(l[1])); err != nil {
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

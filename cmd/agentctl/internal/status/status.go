// Package status has the commands of agentctl about the agent itself: whether it is ready, and its
// metrics.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Commands returns the commands status, version and metrics.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{state(s), version(s), metrics(s)}
}

// An agent is the answer of the command status. The names of its fields are an interface of
// scripts.
type agent struct {
	// Ready tells whether the network is as declared as far as possible.
	Ready   bool
	Status  struct{ wire.AgentStatus }
	Version wire.Version
}

// errNotReady ends status --ready with the exit code 1, which makes it a health check.
var errNotReady = errors.New("the agent is not ready")

// state returns the command that tells whether the agent is ready.
func state(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "status",
		SuggestFor: []string{"health", "ready", "readiness", "info"},
		Short:      "Prints whether the agent is ready, and its parts",
		Long: "Status prints the build of the agent, its state, and the state of each source and connection. An agent is ready when the\n" +
			"network is as declared as far as possible.\n\n" +
			"Exit codes: 0 the agent answers, 1 it does not; with --ready: 0 the agent is ready, 1 it is not. So status and status --ready\n" +
			"are the two health checks of a container.",
		Example: "  agentctl status\n  agentctl status --ready\n  agentctl status -f '{{.Status.AgentStatus.State}}'",
		Args:    session.ExpectArgs(),
	}
	f := show.FormatFlag(cmd, s)
	ready := cmd.Flags().Bool("ready", false, "end with exit code 1 if the agent is not ready")
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		var a agent
		if err := s.Probe(ctx, "/readiness", &a.Status.AgentStatus); err != nil {
			return err
		}
		a.Ready = a.Status.State == wire.StateOK
		if err := s.Get(ctx, "/info/version", nil, &a.Version); err != nil {
			return err
		}
		if err := f.Write(s.Out, a, a.print); err != nil {
			return err
		}
		if *ready && !a.Ready {
			return errNotReady
		}
		return nil
	})
	return cmd
}

// print prints the blocks AGENT and PLUGINS as vpp-agent 3.5, and the reasons why the agent is not ready.
func (a agent) print(out io.Writer) error {
	var b strings.Builder
	b.WriteString("AGENT\n")
	fields(&b, "    ", 12, [][2]string{{"App name", a.Version.App}, {"Version", a.Version.Version}})
	fields(&b, "\n    ", 12, [][2]string{
		{"State", a.Status.State.String()}, {"Started", since(a.Status.StartTime)}, {"Last change", ago(a.Status.LastChange)}, {"Last update", ago(a.Status.LastUpdate)},
	})
	fields(&b, "\n    ", 12, [][2]string{{"Go version", a.Version.GoVersion}, {"OS/Arch", strings.Trim(a.Version.OS+"/"+a.Version.Arch, "/")}})
	fields(&b, "\n    Build Info:\n        ", 11, [][2]string{
		{"Git commit", a.Version.GitCommit}, {"Git branch", a.Version.GitBranch}, {"User", a.Version.BuildUser}, {"Host", a.Version.BuildHost}, {"Built", moment(a.Version.BuildTime)},
	})
	if len(a.Status.Plugins) > 0 {
		b.WriteString("\nPLUGINS\n")
	}
	for _, p := range a.Status.Plugins {
		b.WriteString(strings.TrimRight(fmt.Sprintf("    %s: %s %s", show.Line(p.Name), p.State, show.Remote(p.Error)), " ") + "\n")
	}
	block(&b, "MISSING", a.Status.Missing)
	block(&b, "NOT APPLIED", a.Status.Unapplied)
	_, err := io.WriteString(out, show.Broken(out, b.String(), 2))
	return err
}

// fields prints the fields that are known, with the width of their names. before is printed once, if there is one; its
// last line is the indent of all.
func fields(b *strings.Builder, before string, width int, all [][2]string) {
	indent := before[strings.LastIndexByte(before, '\n')+1:]
	for _, line := range all {
		if line[1] != "" {
			fmt.Fprintf(b, "%s%-*s %s\n", before, width, line[0]+":", show.Line(line[1]))
			before = indent
		}
	}
}

// block prints lines from the agent below a header, or nothing without lines.
func block(b *strings.Builder, header string, lines []string) {
	if len(lines) > 0 {
		b.WriteString("\n" + header + "\n")
	}
	for _, line := range lines {
		b.WriteString("  " + show.Remote(line) + "\n")
	}
}

// since returns a moment in seconds since 1970 for people, and how long ago it was; 0 is unknown and empty.
func since(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return moment(seconds) + " (" + ago(seconds) + " ago)"
}

// moment returns a moment in seconds since 1970; 0 is unknown and empty.
func moment(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().String()
}

// ago returns how long ago a moment was; 0 is unknown and empty.
func ago(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return show.Short(time.Since(time.Unix(seconds, 0)))
}

// Package cli is what agentctl does, apart from being a process.
//
//	code := cli.Run(ctx, args, streams, os.LookupEnv)
//
// A command is a file. It gets its settings, merged from flags, environment and
// configuration file by settings.go, and a store opened by stores.go, or what the
// agent's HTTP server answers, asked by http.go and printed by format.go. Nothing is
// kept between runs. Tests: scripts in testdata, against a real Bolt file behind the
// agent's socket, real files, a real etcd, and a scheduler behind its HTTP server.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
)

// What a run ends with.
const (
	ExitDone     = 0
	ExitFailed   = 1 // it was tried, and did not work
	ExitUsage    = 2 // it made no sense
	ExitNotFound = 3 // the key is not there
)

// Streams are what a run reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// An app is one run.
type app struct {
	Streams
	env func(string) (string, bool)
	// begun tells that what was asked for made sense.
	begun bool
	at    *agentAt // set for commands that look at the agent
	settings
}

// Run runs one command line and returns what the process is to end with.
func Run(ctx context.Context, args []string, s Streams, env func(string) (string, bool)) int {
	a := &app{Streams: s, env: env}
	root := a.command()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	fmt.Fprintln(s.Err, "agentctl:", errorText(err))
	switch {
	case !a.begun:
		fmt.Fprintf(s.Err, "For help: %s -h\n", cmd.CommandPath())
		return ExitUsage
	case errors.Is(err, kvdbsync.ErrNotFound):
		return ExitNotFound
	}
	return ExitFailed
}

// errorText is an error for people. Lines after the first are indented, so that no part of it
// looks like a message of its own.
func errorText(err error) string {
	lines := strings.Split(printable.Text(err.Error()), "\n")
	for i := 1; i < len(lines); i++ {
		lines[i] = "  " + strings.TrimLeft(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:               "agentctl",
		Short:             "Looks at the agent and edits its stores",
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := a.load(cmd.Flags())
			a.begun = err == nil
			return err
		},
		Long: "Agentctl looks at the agent and edits its stores.\n\n" +
			"It ends with 0 when done, 1 when that failed, 2 when the command line made no sense,\n" +
			"3 when the key is not there.",
	}
	a.flags(root.PersistentFlags())
	root.AddCommand(a.kvdb(), a.values(), a.sources(), a.dump(), a.config(), a.explain(), a.plan(), a.vpp())
	return root
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// want refuses any other number of arguments than those named.
func want(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		required := 0
		for _, name := range names {
			if name[0] != '[' {
				required++
			}
		}
		switch {
		case len(args) < required:
			return fmt.Errorf("%s: %s is missing", cmd.CommandPath(), names[len(args)])
		case len(args) > len(names):
			return fmt.Errorf("%s: %q is too much: expected %v", cmd.CommandPath(), args[len(names)], names)
		}
		return nil
	}
}

// Package cli implements the commands of agentctl.
//
//	code := cli.Run(ctx, args, streams, os.LookupEnv)
//
// Each group of commands is a package beside this one, which only has their tree and the exit
// codes. Package session merges flags, environment and configuration file, opens stores and
// queries the agent; package show prints the answers. Nothing is kept between runs, and no
// package has global state: tests run many commands in one process.
//
// A new group is a package with a function Command or Commands, and a line in command.
//
// All text from outside (keys, errors, values) is made printable before it is printed, so
// that a value cannot send control sequences to the user's terminal.
//
// Tests: the scripts in testdata, with a real Bolt file behind the agent's socket, real
// files, a real etcd, and a real scheduler behind its HTTP server.
package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/access"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/config"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/connections"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/declare"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/fleet"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/inspect"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/kv"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/logs"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/migrate"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/plan"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/report"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/service"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/status"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/top"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/validate"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/vpp"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Exit codes of agentctl.
const (
	ExitDone     = 0
	ExitFailed   = 1 // the command was executed and failed
	ExitUsage    = 2 // the command line or the configuration file is invalid; nothing was executed
	ExitChanges  = 2 // of commands that compare, such as plan: there are changes; for them, ExitFailed is also a wrong command line
	ExitNotFound = 3 // the key does not exist
)

// Streams are the standard streams of a run. The caller owns them.
type Streams = session.Streams

// Run executes one command line and returns the exit code. It prints errors to s.Err.
func Run(ctx context.Context, args []string, s Streams, env func(string) (string, bool)) int {
	root, valid := command(&session.Session{Streams: s, Env: env})
	root.SetArgs(withoutHelp(root, args))
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	rest := session.WithoutChanges(err)
	if rest == nil {
		return ExitChanges
	}
	err = rest
	fmt.Fprintln(s.Err, show.Broken(s.Err, "agentctl: "+errorText(err), 2))
	_, mistaken := errors.AsType[session.UsageError](err)
	switch {
	case !*valid, mistaken:
		// The whole help would hide the error.
		fmt.Fprintf(s.Err, "For help: %s -h\n", cmd.CommandPath())
		if _, compares := cmd.Annotations[session.TellsChanges]; compares {
			return ExitFailed
		}
		return ExitUsage
	case errors.Is(err, kvdbsync.ErrNotFound):
		return ExitNotFound
	}
	return ExitFailed
}

// withoutHelp returns the arguments without a request for help, if it is for a word that may be no command. Cobra would print the
// help of the group, and hide that. A group without a command prints its help anyway.
func withoutHelp(root *cobra.Command, args []string) []string {
	isHelp := func(arg string) bool { return arg == "-h" || arg == "--help" }
	isWord := func(arg string) bool {
		return !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, cobra.ShellCompRequestCmd)
	}
	found, rest, err := root.Find(args)
	if err != nil || !found.HasSubCommands() || len(rest) == 0 || !isWord(rest[0]) {
		return args
	}
	return slices.DeleteFunc(slices.Clone(args), isHelp)
}

// errorText returns the message of err for the terminal. Lines after the first are indented,
// so that text from a store cannot pass for a message of agentctl.
func errorText(err error) string {
	lines := strings.Split(printable.Text(show.Plain(err.Error())), "\n")
	for i := 1; i < len(lines); i++ {
		lines[i] = "  " + strings.TrimLeft(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// command builds the tree of commands. It is built for each run, because the commands refer
// to s. valid is set once arguments and settings are valid: later errors are those of the
// command itself.
func command(s *session.Session) (root *cobra.Command, valid *bool) {
	valid = new(bool)
	root = session.Group(&cobra.Command{
		Use:           "agentctl",
		Short:         "Shows the state of the agent and edits its stores",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// All mistakes of the command line are found before anything is executed.
			if *valid = aboutItself(cmd); *valid {
				return nil
			}
			err := s.Load(cmd.Flags())
			*valid = err == nil
			return err
		},
		Long: "Agentctl shows the state of the agent and edits its stores.\n\n" +
			"Exit codes: 0 success, 1 the command failed, 2 the command line is invalid, 3 the value or key does not exist. Of plan, drift and\n" +
			"fleet diff: 0 no changes, 2 changes, 1 everything else.",
		Example: "  agentctl status\n  agentctl values\n  agentctl explain veth1",
	})
	root.SetFlagErrorFunc(session.FlagError)
	s.Flags(root.PersistentFlags())
	root.AddCommand(config.Command(s), vpp.Command(s), logs.Command(s), service.Command(s), access.Command(s), fleet.Command(s), migrate.Command(s))
	root.AddCommand(report.Command(s), connections.Command(s))
	root.AddCommand(kv.Commands(s)...)
	root.AddCommand(inspect.Commands(s)...)
	root.AddCommand(status.Commands(s)...)
	root.AddCommand(top.Command(s))
	root.AddCommand(plan.Commands(s)...)
	root.AddCommand(declare.Commands(s)...)
	root.AddCommand(validate.Commands(s)...)
	addHelp(root, s)
	return root, valid
}

// version returns the version of the module that the binary was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

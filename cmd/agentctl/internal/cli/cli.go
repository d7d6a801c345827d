// Package cli implements the commands of agentctl.
//
//	code := cli.Run(ctx, args, streams, os.LookupEnv)
//
// Each command is a file. settings.go merges flags, environment and configuration file.
// stores.go opens a store for the kvdb commands; http.go queries the agent for the others,
// and format.go prints the answers. Nothing is kept between runs, and the package has no
// global state: tests run many commands in one process.
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
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

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
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// An app is one run of agentctl.
type app struct {
	Streams
	env func(string) (string, bool) // looks up an environment variable
	// argsValid is set once arguments and settings are valid. It decides between ExitUsage and
	// ExitFailed.
	argsValid bool
	target    *agentClient  // set while a command runs that queries the agent
	types     *typesOfAgent // as target
	settings
}

// Run executes one command line and returns the exit code. It prints errors to s.Err.
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
	rest := withoutChanges(err)
	if rest == nil {
		return ExitChanges
	}
	err = rest
	fmt.Fprintln(s.Err, "agentctl:", errorText(err))
	_, mistaken := errors.AsType[usageError](err)
	switch {
	case !a.argsValid, mistaken:
		// The whole help would hide the error.
		fmt.Fprintf(s.Err, "For help: %s -h\n", cmd.CommandPath())
		if _, compares := cmd.Annotations[tellsChanges]; compares {
			return ExitFailed
		}
		return ExitUsage
	case errors.Is(err, kvdbsync.ErrNotFound):
		return ExitNotFound
	}
	return ExitFailed
}

// A usageError is a mistake of the command line that only the agent could tell, such as the name
// of a model that it does not have. Nothing was executed.
type usageError struct{ error }

// errorText returns the message of err for the terminal. Lines after the first are indented,
// so that text from a store cannot pass for a message of agentctl.
func errorText(err error) string {
	lines := strings.Split(printable.Text(err.Error()), "\n")
	for i := 1; i < len(lines); i++ {
		lines[i] = "  " + strings.TrimLeft(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// command builds the tree of commands. It is built for each run, because the commands refer
// to a.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:               "agentctl",
		Short:             "Shows the state of the agent and edits its stores",
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// All mistakes of the command line are found before anything is executed.
			err := a.load(cmd.Flags())
			a.argsValid = err == nil
			return err
		},
		Long: "Agentctl shows the state of the agent and edits its stores.\n\n" +
			"Exit codes: 0 success, 1 the command failed, 2 the command line is invalid,\n" +
			"3 the key does not exist.",
	}
	a.flags(root.PersistentFlags())
	root.AddCommand(a.kvdb(), a.values(), a.model(), a.sources(), a.dump(), a.config(), a.explain(), a.plan(), a.drift(), a.vpp(), a.log())
	return root
}

// version returns the version of the module that the binary was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// expectArgs returns a check that the command line has one argument for each name. Names in
// brackets are optional; they come last.
func expectArgs(names ...string) cobra.PositionalArgs {
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
			return fmt.Errorf("%s: unexpected argument %q: expected %v", cmd.CommandPath(), args[len(names)], names)
		}
		return nil
	}
}

// Package session runs test scripts that read like a user's session: programs in the
// background, edited files, signals, and the resulting state of the kernel. It is test
// code: no product package imports it. It adds these commands to testscript:
//
//	start NAME PROGRAM ARGUMENT...   starts a program; its output is NAME's log
//	await NAME REGEXP...             waits until the rest of the log contains a match of each, in any order
//	[!] said NAME REGEXP             checks that the whole log has (no) match by now
//	signal NAME INT|TERM|KILL|STOP|CONT  sends a signal
//	ended NAME [CODE]                waits until it has ended, with this exit code (0)
//	[!] kernel NETNS REGEXP          waits until the namespace shows (no) such line
//	[!] prints REGEXP PROGRAM ARGUMENT...  repeats it until it prints (no) such line
//	[!] netns NAME                   creates, or with ! deletes, a named namespace
//
// Whatever a script starts is killed at its end. Scripts that share a network run one
// after the other. Where the test is in a scratch network, a copy of it runs each script,
// in a scratch network of its own. Several copies run side by side: most of the time a
// script waits.
package session

import (
	"maps"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/scratch"
)

// Run runs the scripts in dir. PATH begins with bin, the folder of the programs; setup and
// more may be nil.
func Run(t *testing.T, dir, bin string, setup func(*testscript.Env) error, more map[string]Command) {
	t.Helper()
	scripts := scriptsIn(t, dir)
	switch own := ownScript(); {
	case own != "":
		scripts = []string{own}
	case len(scripts) > 1 && scratch.Inside():
		runCopies(t, bin, scripts)
		return
	}
	commands := map[string]Command{
		"start": start, "await": await, "said": said, "signal": signal, "ended": ended, "kernel": kernel, "prints": prints, "netns": namespace,
	}
	maps.Copy(commands, more)
	testscript.RunT(inTurn{t}, testscript.Params{
		Files: scripts,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Setenv("STATE_DIRECTORY", filepath.Join(env.WorkDir, "state"))
			env.Values[programsKey{}] = map[string]*program{}
			if setup == nil {
				return nil
			}
			return setup(env)
		},
		Cmds: commands,
	})
}

// A Command is a command of scripts.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// inTurn is a testscript.T that runs scripts one after the other.
type inTurn struct{ *testing.T }

// Parallel does nothing: scripts in one process share its namespaces.
func (inTurn) Parallel() {}

// Verbose is that of go test.
func (inTurn) Verbose() bool { return testing.Verbose() }

// Run runs one script as a subtest.
func (t inTurn) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

// pattern compiles a regular expression in which ^ and $ match at lines.
func pattern(ts *testscript.TestScript, text string) *regexp.Regexp {
	re, err := regexp.Compile("(?m)" + text)
	ts.Check(err)
	return re
}

// arguments ends the script with the usage if ok is false.
func arguments(ts *testscript.TestScript, ok bool, usage string) {
	if !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

package agent

import (
	"io"
	"os"
)

// Options configure an agent. The zero value is the standard agent: Main takes its flags from
// the process, Run takes the defaults of all flags.
type Options struct {
	// Args are the flags of the command line, without the program. Defaults to those of the
	// process in Main, and to none in Run.
	Args []string
	// Env reads a variable of the environment: each flag that Args lack can be there.
	// Defaults to os.LookupEnv in Main, and to an empty environment in Run.
	Env func(name string) (value string, set bool)
	// Stdout takes the transaction log, the help and the version. Defaults to os.Stdout.
	Stdout io.Writer
	// Stderr takes the log. Defaults to os.Stderr.
	Stderr io.Writer
}

// forProcess adds the command line and the environment of the process.
func (o Options) forProcess() Options {
	if o.Args == nil {
		o.Args = os.Args[1:]
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	return o
}

// complete returns the options with their defaults.
func (o Options) complete() Options {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	return o
}

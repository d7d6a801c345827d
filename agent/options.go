package agent

import (
	"cmp"
	"flag"
	"io"
	"os"

	"github.com/keyplane/keyplane/agent/internal/manager"
	"github.com/keyplane/keyplane/models"
)

// Options configure an agent. The zero value is the standard agent, cmd/agent.
//
// Additions are values: nothing registers itself, and two agents of one process may differ.
// The functions are called once, in order, before anything runs. An error of one ends the
// start.
type Options struct {
	// Name is the program's name in the help and in errors. Defaults to agent.
	Name string

	// Models are known in addition to the built-in ones: in every store, in the file form,
	// and in all northbounds. See models.Define.
	Models []*models.Model
	// Flags declares flags. Each can also be set in the environment, like the built-in
	// ones. Their values are set when the other functions are called.
	Flags func(*flag.FlagSet)
	// Stores are kinds of stores in addition to the built-in ones.
	Stores []StoreKind
	// Descriptors register descriptors with Parts.Scheduler, after the built-in ones. Their
	// tasks run as long as the scheduler.
	Descriptors []Addition
	// Northbounds let people and programs declare values or read state. Their tasks end
	// before the scheduler. An agent with one of them needs no store.
	Northbounds []Addition
	// Folders are those of keys below /vnf-agent/LABEL/ that the program itself reads or writes, such as
	// "acme/". Nobody is warned that the agent does not read them.
	Folders []string
	// Without lists the built-in parts that this agent lacks. Their flags stay valid, and
	// have no effect.
	Without []Part

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

	// process says that the agent may change settings of the whole process, and report to
	// its service manager.
	process bool
}

// env returns a variable of the environment, or "".
func (o Options) env(name string) string {
	value, _ := o.Env(name)
	return value
}

// managerSocket is the socket of the service manager; "": there is none, or the agent is not the process as a whole.
func (o Options) managerSocket() string {
	if !o.process {
		return ""
	}
	return o.env(manager.Variable)
}

// forProcess adds the command line and the environment of the process.
func (o Options) forProcess() Options {
	o.process = true
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
	o.Name = cmp.Or(o.Name, "agent")
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

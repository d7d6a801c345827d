// First-light starts the agent with a small example in a scratch network: two network
// namespaces, a VETH pair between them, addresses, a route and a static neighbour, and a
// simulated VPP with a bridge domain. It needs neither root nor other tools. When it ends,
// it leaves only the files in .run, which the user may edit. `make run` is `first-light
// run`; see README.md.
//
// Each command except run has two halves. Outside, it enters the scratch network and
// starts itself again there. Inside, it does its work.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

const usage = `first-light: the agent with a small example, in a scratch network of its own

  first-light run                      start it; Ctrl-C ends it and removes the network
  first-light show                     the network, and the simulated VPP
  first-light ping NETNS ADDRESS       does an echo come back? (red or blue)
  first-light exec NETNS [COMMAND ...] any command inside; a shell without one

All but run are for another terminal, in the same folder, while it runs.
`

// errUsage is the error of a wrong command line.
var errUsage = errors.New("usage")

func main() {
	err := do(os.Args[1:], os.Stdout)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode()) // the agent has printed the reason
	default:
		fmt.Fprintln(os.Stderr, "first-light:", err)
		os.Exit(1)
	}
}

// do runs one command. Commands that need the agent's namespaces enter them first.
func do(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	verb, rest := args[0], args[1:]
	switch {
	case verb == "run" && len(rest) == 0:
		return run(out)
	case verb == insideVerb:
		return become(rest)
	case !known(verb, rest):
		return errUsage
	case !isInside():
		return enter(args)
	case verb == "show":
		return show(out)
	case verb == "ping":
		return pingFrom(out, rest[0], rest[1])
	default:
		return execIn(rest[0], rest[1:])
	}
}

// known reports whether the command exists and has the right number of arguments.
func known(verb string, args []string) bool {
	switch verb {
	case "show":
		return len(args) == 0
	case "ping":
		return len(args) == 2
	case "exec":
		return len(args) >= 1
	}
	return false
}

package main

import (
	"fmt"
	"io"
	"strings"
)

const usageHead = `agent keeps the network of this host as keys and values declare it.

  agent [flags]

A flag may have one dash or two. Each can be given in the environment too, under
the name in capitals; the command line wins.
`

const usageTail = `
About
  -h, -help
  -V, -version

The transaction log (what is planned and done) goes to standard output, messages
go to standard error. SIGTERM or SIGINT end the agent in order, a second one at
once. With NOTIFY_SOCKET (as under systemd) it tells when the network first stands.
With ENABLE_STATUS_PUBLISHING it writes into every store what became of each key;
orchestrator.conf can do it store by store.

Exit codes
  0  it ended as it was told to
  1  it failed, or did not end in order within stop-timeout
  2  it cannot start: flags, environment, configuration, or no store

Accepted, without effect in this release
`

// usage prints help for a person.
func usage(out io.Writer) {
	fmt.Fprint(out, usageHead)
	for _, section := range (&settings{}).sections() {
		fmt.Fprintf(out, "\n%s\n", section.title)
		for _, e := range section.flags {
			fmt.Fprintf(out, "  %-40s %s\n      %s\n", "-"+e.name+" "+e.arg, envName(e.name), describe(e))
		}
	}
	fmt.Fprint(out, usageTail, wrap(idleFlags(), 78), "\n")
}

func describe(e entry) string {
	if def := e.value.String(); def != "" {
		return fmt.Sprintf("%s (default: %s)", e.help, def)
	}
	return e.help
}

// wrap joins words with spaces into lines of at most width.
func wrap(words []string, width int) string {
	lines := []string{" "}
	for _, word := range words {
		last := &lines[len(lines)-1]
		if len(*last)+1+len(word) > width {
			lines = append(lines, " ")
			last = &lines[len(lines)-1]
		}
		*last += " -" + word
	}
	return strings.Join(lines, "\n")
}

package agent

import (
	"fmt"
	"io"
	"strings"
)

const usageHead = ` configures the network of this host from declared keys and values.

  %s [flags]

A flag may have one dash or two. Each can also be set in the environment, under
the name in capitals. The command line wins.
`

const usageTail = `
About
  -h, -help
  -V, -version

The transaction log (planned and executed operations) goes to standard output,
messages go to standard error. SIGTERM or SIGINT stop the agent in order, a second
one at once. With NOTIFY_SOCKET (as under systemd) it reports when the network is applied,
and with WATCHDOG_USEC that its event loops go on.
With ENABLE_STATUS_PUBLISHING it writes the status of each key into every store;
orchestrator.conf selects single stores.

Exit codes
  0  it stopped as requested
  1  it failed, did not stop within stop-timeout, or was to remove its items and some are left
  2  it cannot start: flags, environment, configuration, or nothing that declares values

Accepted for compatibility, without effect in this release
`

// usage prints the help.
func (o Options) usage(out io.Writer) {
	s := &settings{options: o, storeFiles: map[string]*string{}}
	fmt.Fprintf(out, o.Name+usageHead, o.Name)
	for _, section := range s.sections() {
		fmt.Fprintf(out, "\n%s\n", section.title)
		for _, e := range section.flags {
			fmt.Fprintf(out, "  %-40s %s\n      %s\n", "-"+e.name+" "+e.arg, envName(e.name), describe(e))
		}
	}
	fmt.Fprint(out, usageTail, wrap(s.idleFlags(), 78), "\n")
}

// describe returns the help of a flag with its default.
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

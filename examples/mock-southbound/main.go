// Mock-southbound shows how the scheduler handles values that arrive late, change, fail
// and vanish. The values are VPP's interfaces, bridge domains, FIB entries and routes. The
// southbound is a map in memory that prints its operations.
//
//	go run ./examples/mock-southbound af-packet
//
// Each kind of item has a file with its descriptor: interface.go, bridge_domain.go,
// fib.go, route.go. All share the verbs in memory.go. A scenario is a list of steps
// (scenarios.go, steps.go). The lab in lab.go runs it and prints the events.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// errUsage is the error of a wrong command line.
var errUsage = errors.New("usage")

func main() {
	err := do(context.Background(), os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, errUsage):
		usage(os.Stderr)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "mock-southbound:", err)
		os.Exit(1)
	}
}

// usage lists the scenarios.
func usage(out io.Writer) {
	fmt.Fprint(out, "mock-southbound [-log] [-pictures FOLDER] SCENARIO...\n\n")
	for _, s := range scenarios() {
		fmt.Fprintf(out, "  %-14s %s\n", s.name, s.about)
	}
	fmt.Fprint(out, "  all            each of them\n\n  -log           the scheduler's own transaction log, too\n"+
		"  -pictures      a picture of the graph after each step, in FOLDER/SCENARIO.svg\n")
}

// do plays the scenarios that the arguments name.
func do(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mock-southbound", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	how := show{out: out}
	flags.BoolVar(&how.log, "log", false, "")
	flags.StringVar(&how.pictures, "pictures", "", "")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	chosen, ok := choose(flags.Args())
	if !ok {
		return errUsage
	}
	for i, s := range chosen {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s\n", s.name, s.about)
		if err := s.play(ctx, how); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// choose returns the scenarios of these names; ok is false for an unknown one.
func choose(names []string) (chosen []scenario, ok bool) {
	for _, name := range names {
		before := len(chosen)
		for _, s := range scenarios() {
			if name == s.name || name == "all" {
				chosen = append(chosen, s)
			}
		}
		if len(chosen) == before {
			return nil, false
		}
	}
	return chosen, len(chosen) > 0
}

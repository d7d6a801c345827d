// Command protogen turns the .proto files below a folder into Go, next to them:
//
//	go -C tools run ./protogen ../proto
//
// It needs nothing but Go: it parses with protocompile and runs the generators
// of messages and services that the folder's own module pins as tools. Files
// that come out as they are stay untouched, and .pb.go files without a .proto
// are removed, so on a clean tree it changes nothing. With -check it writes nothing and fails,
// naming them, if there are files it would change.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "change nothing; fail if there is something to change")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// run brings the Go files below root up to date, or says which are not.
func run(ctx context.Context, root string, check bool) error {
	want, err := generate(ctx, root)
	if err != nil {
		return err
	}
	changes, err := compare(root, want)
	if err != nil || len(changes) == 0 {
		return err
	}
	if check {
		return fmt.Errorf("out of date, run make generate: %s", strings.Join(names(changes), ", "))
	}
	return apply(root, changes)
}

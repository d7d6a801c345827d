// Command gotest is go test with a line every 10 s that says how many packages are tested and which are running:
//
//	go run ./internal/gotest -timeout 30m ./scheduler/... -run '^TestLife$'
//	go run ./internal/gotest -rerun .cache/bin/gotestsum -flaky flaky.txt ./...
//
// The arguments are those of go test; packages begin with "./". It prints what go test prints, with the failed tests of a
// package together, each with its name first.
//
// With -rerun, gotestsum runs go test, and repeats at most 5 failed tests once. It repeats nothing where a package does
// not build, panics or has a data race. A test that fails and then passes is added to the file of -flaky, with the first
// line of its failure. A package that fails outside of its tests fails the run: gotestsum would repeat no test of it, and
// call that a pass.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// period is the time from one line about the progress to the next.
const period = 10 * time.Second

func main() {
	err := run(os.Args[1:], os.Stdout)
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		os.Exit(1) // go test has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

// options are the command's own.
type options struct {
	rerun string   // path of gotestsum; empty: nothing is repeated
	flaky string   // path of a file
	rest  []string // the arguments of go test
}

// parse takes the command's own options from the front of its arguments.
func parse(args []string) (o options, err error) {
	for ; len(args) > 1; args = args[2:] {
		switch args[0] {
		case "-rerun":
			o.rerun = args[1]
			continue
		case "-flaky":
			o.flaky = args[1]
			continue
		}
		break
	}
	o.rest = args
	if (o.rerun == "") != (o.flaky == "") {
		return o, errors.New("-rerun and -flaky belong together")
	}
	return o, nil
}

// again is the first argument of this program where gotestsum calls it to run go test.
const again = "-again"

func run(args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == again {
		return become("go", eventsOf(args[1:])...)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	packages, err := list(o.rest)
	if err != nil {
		return err
	}
	tests := newAccount(packages)
	if o.rerun != "" {
		return withReruns(o, tests, out)
	}
	return plainly(o.rest, tests, out)
}

// list returns the number of packages that the arguments name.
func list(args []string) (int, error) {
	named := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !isPackage(arg) })
	found, err := exec.Command("go", append([]string{"list", "-e"}, named...)...).Output() //nolint:gosec // the caller names the packages
	if err != nil {
		return 0, fmt.Errorf("go list %s: %w", strings.Join(named, " "), err)
	}
	return strings.Count(string(found), "\n"), nil
}

func isPackage(arg string) bool { return strings.HasPrefix(arg, "./") }

// eventsOf returns the arguments of go that have it print events. gotestsum adds the pattern and the package of a test
// that it repeats. They replace those before, and no result of another run is taken for the repetition.
func eventsOf(args []string) []string {
	first, added := args[:max(0, len(args)-2)], args[max(0, len(args)-2):]
	if len(added) < 2 || !strings.HasPrefix(added[0], "-test.run=") {
		return append([]string{"test", "-json"}, args...)
	}
	// A package behind a flag that go test does not know would be an argument of the tests.
	out := []string{"test", "-json", "-count=1", added[1], added[0]}
	pattern := false // the next argument is that of -run
	for _, arg := range first {
		if !pattern && arg != "-run" && !isPackage(arg) {
			out = append(out, arg)
		}
		pattern = arg == "-run"
	}
	return out
}

// become replaces this process by a program.
func become(program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{program}, args...), os.Environ()) //nolint:gosec // the caller names the arguments
}

// plainly runs go test, and prints what it says.
func plainly(args []string, tests *account, out io.Writer) error {
	cmd := exec.Command("go", eventsOf(args)...) //nolint:gosec // the caller names the arguments
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		for reader := bufio.NewReader(events); ; {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				return // the end of go test
			}
		}
	}()
	screen := newScreen(out)
	tick := time.NewTicker(period)
	defer tick.Stop()
	for open := true; open; {
		select {
		case line, more := <-lines:
			if open = more; more {
				screen.print(tests.add(line))
			}
		case <-tick.C:
			screen.say(tests.progress())
		}
	}
	screen.print("")
	return cmd.Wait()
}

// withReruns has gotestsum run go test and repeat failed tests.
func withReruns(o options, tests *account, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	events, err := os.CreateTemp("", "gotest-*.json")
	if err != nil {
		return err
	}
	defer os.Remove(events.Name())
	defer events.Close()
	cmd := exec.Command(o.rerun, append([]string{ //nolint:gosec // the caller names the program
		"--format=standard-quiet", "--jsonfile=" + events.Name(), "--rerun-fails=1", "--rerun-fails-max-failures=5",
		"--rerun-fails-abort-on-data-race", "--raw-command", "--", self, again,
	}, o.rest...)...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// gotestsum writes the file as events come.
	reader, screen := &follower{file: bufio.NewReader(events)}, newScreen(out)
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			reader.each(tests)
			return cmp.Or(appendTo(o.flaky, tests.flaky()), err, tests.unexplained())
		case <-tick.C:
			reader.each(tests)
			screen.say(tests.progress())
		}
	}
}

// A follower reads the whole lines of a file that grows.
type follower struct {
	file *bufio.Reader
	part []byte // of a line whose end is not written yet
}

// each adds the new events to an account.
func (f *follower) each(tests *account) {
	for {
		line, err := f.file.ReadBytes('\n')
		f.part = append(f.part, line...)
		if err != nil {
			return // the rest comes later
		}
		tests.add(f.part)
		f.part = nil
	}
}

// appendTo adds lines to a file.
func appendTo(path string, lines []string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if _, wrong := fmt.Fprintln(file, line); wrong != nil {
			err = wrong
		}
	}
	return errors.Join(err, file.Close())
}

// decode returns the event of a line. go test prints other lines when it does not come to testing.
func decode(line []byte) (e event, ok bool) { return e, json.Unmarshal(line, &e) == nil }

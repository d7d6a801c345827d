// Command coverage prints how much of each package the tests have run, and fails if a product package or all
// of them together are short:
//
//	go test -coverpkg=./... -coverprofile=cover.out ./...
//	go run ./internal/coverage cover.out
//
// Generated code, programs for tests and examples are no product packages.
package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The least percentage of statements, of each product package and of all together.
const (
	leastOfEach = 70
	leastOfAll  = 80
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("expected one profile of go test -coverprofile")
	}
	profile, err := os.Open(args[0]) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	defer profile.Close()
	all, err := read(profile)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return report(out, all)
}

// A share is a number of statements, and how many of them the tests have run.
type share struct{ run, all int }

func (s share) percent() float64 { return 100 * float64(s.run) / float64(max(s.all, 1)) }

// read returns the shares of the product packages. A block may be on several lines, one for
// each test binary: one of them suffices.
func read(profile io.Reader) (map[string]share, error) {
	type block struct {
		statements int
		run        bool
	}
	blocks := map[string]block{}
	line := regexp.MustCompile(`^(\S+\.go:\S+) (\d+) (\d+)$`)
	in := bufio.NewScanner(profile)
	for in.Scan() {
		parts := line.FindStringSubmatch(in.Text())
		if parts == nil {
			if strings.HasPrefix(in.Text(), "mode:") {
				continue
			}
			return nil, fmt.Errorf("line %q: expected FILE:BLOCK STATEMENTS COUNT", in.Text())
		}
		statements, err := strconv.Atoi(parts[2])
		if err != nil {
			return nil, err
		}
		blocks[parts[1]] = block{statements, blocks[parts[1]].run || parts[3] != "0"}
	}
	out := map[string]share{}
	for at, b := range blocks {
		file, _, _ := strings.Cut(at, ":")
		if !product(file) {
			continue
		}
		s := out[path.Dir(file)]
		s.all += b.statements
		if b.run {
			s.run += b.statements
		}
		out[path.Dir(file)] = s
	}
	return out, in.Err()
}

// product reports whether a file is one of a product package.
func product(file string) bool {
	return !regexp.MustCompile(`\.pb\.go$|\.ba\.go$|/examples/|/internal/(coverage|faults|olderctl|scratch|siege|testkit|vppsim|walk)/|/conformance/|/(fakelinux|fakeengine|fakenet|simulated)/|/(cmd/[^/]+|ui/sum)/main\.go$|/cmd/vppsim/`).MatchString(file)
}

// report prints the shares, the lowest first, and returns an error about those that are short.
func report(out io.Writer, all map[string]share) error {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return int(all[a].percent()*100) - int(all[b].percent()*100)
	})
	var total share
	short := 0
	for _, name := range names {
		s := all[name]
		total.run, total.all = total.run+s.run, total.all+s.all
		mark := ""
		if s.percent() < leastOfEach {
			mark, short = fmt.Sprintf("  short of %d %%", leastOfEach), short+1
		}
		fmt.Fprintf(out, "%5.1f %%  %5d statements  %s%s\n", s.percent(), s.all, name, mark)
	}
	fmt.Fprintf(out, "%5.1f %%  %5d statements  all product packages\n", total.percent(), total.all)
	if short > 0 || total.percent() < leastOfAll {
		return fmt.Errorf("%d packages are below %d %%, and all together are at %.1f %%; expected at least %d %%", short, leastOfEach, total.percent(), leastOfAll)
	}
	return nil
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// An event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// An account is what the events of all runs say.
//
//	run of a package   begins with start, ends with pass, fail or skip
//	run of a test      begins with run, ends with pass, fail or skip, or not at all where the package fails
type account struct {
	packages int // that are to be tested
	begun    time.Time
	done     map[string]bool      // packages that have ended at least once
	running  map[string]time.Time // packages, since when
	current  map[string]*result   // of the run of each package
	failed   map[string]string    // first lines of failures, by package and test
	passed   map[string]bool      // tests that passed after they had failed
	outside  []string             // packages that failed outside of their tests
}

// A result is that of one run of a package.
type result struct {
	output strings.Builder // of the package itself
	tests  []*test         // in the order of their begin
}

// A test is one run of a test.
type test struct {
	name   string
	ended  string // by which action; empty: it runs
	output strings.Builder
}

func newAccount(packages int) *account {
	return &account{
		packages: packages, begun: time.Now(), done: map[string]bool{}, running: map[string]time.Time{},
		current: map[string]*result{}, failed: map[string]string{}, passed: map[string]bool{},
	}
}

// add takes one line, and returns what go test would print because of it.
func (a *account) add(line []byte) string {
	e, ok := decode(line)
	switch {
	case !ok:
		return string(line)
	case e.Action == "build-output":
		return e.Output
	case e.Action == "build-fail":
		return ""
	}
	r := a.current[e.Package]
	if r == nil {
		r = &result{}
		a.current[e.Package] = r
	}
	if e.Test != "" {
		a.addTest(e, r.test(e))
		return ""
	}
	return a.addPackage(e, r)
}

// addPackage takes an event of a package itself.
func (a *account) addPackage(e event, r *result) string {
	switch e.Action {
	case "start":
		a.running[e.Package] = time.Now()
	case "output":
		r.output.WriteString(e.Output)
	case "pass", "skip", "fail":
		delete(a.running, e.Package)
		delete(a.current, e.Package)
		a.done[e.Package] = true
		if e.Action != "fail" {
			return r.lastLines()
		}
		if !r.explained() {
			a.outside = append(a.outside, e.Package)
		}
		return r.failure()
	}
	return ""
}

// addTest takes an event of a test.
func (a *account) addTest(e event, t *test) {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
	case "pass":
		_, again := a.failed[name]
		a.passed[name] = a.passed[name] || again
	case "fail":
		a.failed[name] = firstLine(t.output.String())
	}
	if slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
		t.ended = e.Action
		if e.Action != "fail" {
			t.output.Reset()
		}
	}
}

// test returns the run of a test that an event belongs to.
func (r *result) test(e event) *test {
	for _, t := range slices.Backward(r.tests) {
		if t.name == e.Test {
			return t
		}
	}
	t := &test{name: e.Test}
	r.tests = append(r.tests, t)
	return t
}

// explained reports whether tests that failed explain the failure of the package, and all others have ended. A package
// also fails because its process ends, by os.Exit or otherwise.
func (r *result) explained() bool {
	failed := false
	for _, t := range r.tests {
		if t.ended == "" {
			return false
		}
		failed = failed || t.ended == "fail"
	}
	return failed
}

// lastLines returns what go test prints of a package that has not failed.
func (r *result) lastLines() string {
	var out strings.Builder
	for line := range strings.Lines(r.output.String()) {
		if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? ") || strings.HasPrefix(line, "\t") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// failure returns the output of a package that has failed: that of its failed tests, and then its own.
func (r *result) failure() string {
	var out strings.Builder
	for _, t := range r.tests {
		if t.ended != "" && t.ended != "fail" {
			continue
		}
		verdict, text := "", strings.Builder{}
		for line := range strings.Lines(t.output.String()) {
			switch {
			case strings.HasPrefix(line, "=== "):
			case verdict == "" && strings.HasPrefix(strings.TrimLeft(line, " "), "--- FAIL"):
				verdict = line
			default:
				text.WriteString(line)
			}
		}
		if verdict == "" {
			verdict = "--- FAIL: " + t.name + " (it has not ended)\n"
		}
		out.WriteString(verdict + text.String())
	}
	out.WriteString(r.output.String())
	return out.String()
}

// firstLine returns the first line of a test's output that the test itself wrote.
func firstLine(output string) string {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line
		}
	}
	return ""
}

// progress says how far the tests are.
func (a *account) progress() string {
	type entry struct {
		name  string
		since time.Time
	}
	var running []entry
	for name, since := range a.running {
		running = append(running, entry{name, since})
	}
	slices.SortFunc(running, func(x, y entry) int { return x.since.Compare(y.since) })
	out := fmt.Sprintf("%d of %d packages tested, %.0f s", len(a.done), a.packages, time.Since(a.begun).Seconds())
	switch {
	case len(running) == 0 && len(a.done) < a.packages:
		return out + "; compiling"
	case len(running) == 0:
		return out
	}
	var names []string
	for _, r := range running {
		names = append(names, fmt.Sprintf("%s %.0f s", shorter(r.name), time.Since(r.since).Seconds()))
	}
	return out + "; running: " + strings.Join(names, ", ")
}

// shorter returns an import path without the host and the owner.
func shorter(path string) string {
	if parts := strings.SplitN(path, "/", 4); len(parts) == 4 {
		return parts[3]
	}
	return path
}

// flaky returns a line for each test that failed and then passed. A test that failed only because a part of it did is
// left out.
func (a *account) flaky() (out []string) {
	names := slices.Sorted(maps.Keys(a.failed))
	for _, name := range names {
		part := slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
		if a.passed[name] && !part {
			out = append(out, name+": "+a.failed[name])
		}
	}
	return out
}

// unexplained returns an error that names the packages which failed outside of their tests.
func (a *account) unexplained() error {
	if len(a.outside) == 0 {
		return nil
	}
	return fmt.Errorf("%s failed outside of its tests, so a repetition of tests proves nothing", strings.Join(a.outside, ", "))
}

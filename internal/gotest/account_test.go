package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// play adds events to an account: action, package, test, output, with a dot for nothing.
func play(a *account, events ...string) {
	for _, e := range events {
		words := append(strings.SplitN(e, " ", 4), "", "", "")
		text := `{"Action":"` + words[0] + `","Package":"example.com/owner/m/` + words[1] + `"`
		if words[2] != "" && words[2] != "." {
			text += `,"Test":"` + words[2] + `"`
		}
		a.add([]byte(text + `,"Output":"` + words[3] + `"}` + "\n"))
	}
}

// The line about the progress counts packages that have ended, and names those that run, the longest first.
func TestProgress(t *testing.T) {
	a := newAccount(3)
	times := regexp.MustCompile(`\d+ s`)
	for _, step := range []struct {
		events []string
		want   string
	}{
		{nil, "0 of 3 packages tested, N s; compiling"},
		{[]string{"start a", "start b"}, "0 of 3 packages tested, N s; running: a N s, b N s"},
		{[]string{"pass a", "skip c"}, "2 of 3 packages tested, N s; running: b N s"},
		{[]string{"fail b"}, "3 of 3 packages tested, N s"},
		{[]string{"start b"}, "3 of 3 packages tested, N s; running: b N s"}, // a repetition counts once
		{[]string{"pass b"}, "3 of 3 packages tested, N s"},
	} {
		play(a, step.events...)
		if got := times.ReplaceAllString(a.progress(), "N s"); got != step.want {
			t.Errorf("after %q: %s; expected %s", step.events, got, step.want)
		}
	}
}

func TestFlaky(t *testing.T) {
	const fails = "fail a"
	for _, test := range []struct {
		name    string
		events  []string
		flaky   []string
		outside bool
	}{
		{"a failure that repeats", []string{"run a T", "fail a T", fails, "run a T", "fail a T", fails}, nil, false},
		{"a test and its part", []string{
			"run a T", "run a T/x", `output a T/x === RUN T/x\n`, `output a T/x   a.go:1: expected 1\n`, "fail a T/x", "fail a T", fails,
			"run a T", "run a T/x", "pass a T/x", "pass a T", "pass a",
		}, []string{"example.com/owner/m/a T/x: a.go:1: expected 1"}, false},
		{"a process that ends in a test", []string{"run a T", fails, "run a T", "pass a T", "pass a"}, nil, true},
		{"a process that ends after a failure", []string{"run a T", "fail a T", "run a U", fails, "run a T", "pass a T", "pass a"}, []string{"example.com/owner/m/a T: "}, true},
		{"a process that fails after its tests", []string{"run a T", "pass a T", fails, "pass a"}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAccount(1)
			play(a, test.events...)
			if got := a.flaky(); !slices.Equal(got, test.flaky) {
				t.Errorf("flaky: %q; expected %q", got, test.flaky)
			}
			if err := a.unexplained(); (err != nil) != test.outside {
				t.Errorf("the error is %v; expected one: %v", err, test.outside)
			}
		})
	}
}

// On a terminal a line about the progress moves, and gives way to what stays.
func TestScreen(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		want     string
	}{{false, "1 of 2\n2 of 2\nok\n"}, {true, toStart + "1 of 2" + toStart + "2 of 2" + toStart + "ok\n"}} {
		var out strings.Builder
		s := newScreen(&out)
		s.terminal = test.terminal
		s.say("1 of 2")
		s.say("2 of 2")
		s.print("")
		s.print("ok\n")
		if out.String() != test.want {
			t.Errorf("terminal: %v: %q; expected %q", test.terminal, out.String(), test.want)
		}
	}
}

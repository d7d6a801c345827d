package vpp

import (
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Lines and columns of VPP stay lines and columns; what could be a command to the terminal is shown.
func TestOutput(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"\r\n":                          "",
		"one\r\ntwo\n\n":                "one\ntwo\n",
		"a\tb\n\tc":                     "a\tb\n\tc\n",
		"unlike a terminal's\x1b[2J \r": `unlike a terminal's\x1b[2J \r` + "\n",
	} {
		if got := output(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
}

// A property is one line, whatever the error has.
func TestInfoHasOneLineForEachProperty(t *testing.T) {
	var out strings.Builder
	err := infoTable(&out, wire.VPP{Connected: true, Version: "25.10", LastError: "first\nsecond\x1b", LastErrorAt: time.Now(), NoPlugins: "third\nfourth"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"VPP:         connected\n", `Last error:  first; second\x1b, `, "Plugins:     unknown: third; fourth\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, &out)
		}
	}
}

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// .ci/racy leaves out packages whose tests have one goroutine, and no other: kvdbsync starts some itself, the tests of
// scheduler/internal/watch do, and scheduler/inspect uses a package that does.
func TestRacy(t *testing.T) {
	out, err := exec.Command("../../.ci/racy", "./kvdbsync", "./models/limits", "./scheduler/inspect", "./scheduler/internal/watch", "./scheduler/internal/graph").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"./kvdbsync", "./scheduler/inspect", "./scheduler/internal/watch"}
	if got := strings.Fields(string(out)); !slices.Equal(got, want) {
		t.Errorf("packages %q; expected %q", got, want)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// start runs one until the test ends; it has said that it is there.
func start(t *testing.T, args ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, args, in, testkit.Log(t)) }()
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "simulated VPP ") {
		t.Fatalf("it says %q, %v", line[:n], err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestStartAndShow(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "vpp", "api.sock")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-socket", socket, "show", "interface"}, &out, testkit.Log(t)); err == nil {
		t.Error("nothing runs, and it shows something")
	}
	start(t, "-socket", socket, "-release", "24.10", "-hardware", "nic0,nic1", "-workers", "2", "-without", "rdma,gtpu")
	if err := run(t.Context(), []string{"-socket", socket, "show", "interface"}, &out, testkit.Log(t)); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "VPP 24.10-simulated, show interface:\n") || !strings.Contains(text, "local0") || !strings.Contains(text, "nic1") {
		t.Errorf("it shows %s", text)
	}
	err := run(t.Context(), []string{"-socket", socket}, io.Discard, testkit.Log(t))
	if err == nil || !strings.Contains(err.Error(), "a VPP at "+socket+" already") {
		t.Errorf("a second one: %v", err)
	}
}

func TestCommandsThatMakeNoSense(t *testing.T) {
	for _, args := range [][]string{{"-no-such-flag"}, {"create", "loopback"}} {
		if err := run(t.Context(), args, io.Discard, testkit.Log(t)); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
	for says, args := range map[string][]string{`no release "21.01"`: {"-release", "21.01"}, `no plugin "x"`: {"-without", "gtpu,x"}} {
		err := run(t.Context(), append(args, "-socket", filepath.Join(t.TempDir(), "s")), io.Discard, testkit.Log(t))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

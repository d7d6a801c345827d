package grpc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/northbound/grpc"
)

// withoutRedaction removes an option that protoc has since version 22; that of Debian 12 is older.
func withoutRedaction(text []byte) []byte {
	return regexp.MustCompile(` \[debug_redact = true\]|, debug_redact = true`).ReplaceAll(text, nil)
}

// A client in Python, generated from the .proto files, declares an interface and a route, waits
// for both, and gets an error of a thousand values: its header has to fit.
func TestPythonClient(t *testing.T) {
	python := "/usr/bin/python3"
	err := exec.CommandContext(t.Context(), python, "-c", "import grpc, grpc_tools").Run()
	testkit.Need(t, "python3-grpcio and python3-grpc-tools (apt-get install)", err == nil)
	w := newWorld(t, nil)
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0"})
	made := t.TempDir()
	root := t.TempDir()
	var files []string
	err = filepath.WalkDir("../../proto", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".proto") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("../../proto", path)
		if err != nil {
			return err
		}
		files = append(files, filepath.Join(root, rel))
		if err := os.MkdirAll(filepath.Dir(files[len(files)-1]), 0o755); err != nil {
			return err
		}
		return os.WriteFile(files[len(files)-1], withoutRedaction(text), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	generate := exec.CommandContext(t.Context(), python, append([]string{"-m", "grpc_tools.protoc", "-I", root, "--python_out=" + made, "--grpc_python_out=" + made}, files...)...)
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script, err := filepath.Abs("testdata/client.py")
	if err != nil {
		t.Fatal(err)
	}
	client := exec.CommandContext(t.Context(), python, script, addr.String())
	client.Env = append(os.Environ(), "PYTHONPATH="+made)
	out, err := client.CombinedOutput()
	const want = "declared\nFAILED_PRECONDITION KeyErrors: [config/linux/interfaces/v2/interface/bad0 (VALIDATE): invalid value: mtu is 10000; expected at most 9216\nif1 CONFIGURED\n10.1.0.0/16/if1 CONFIGURED\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
	if got := w.names(); got != "10.1.0.0/16/if1 if1" {
		t.Errorf("stands %q", got)
	}
}

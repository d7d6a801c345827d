package session

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/keyplane/keyplane/internal/scratch"
)

const (
	// shards is how many copies of a test run its scripts.
	shards = 4
	// shardVariable tells a copy which one it is, from 0.
	shardVariable = "KEYPLANE_SHARD"
	// binVariable is where a copy finds the programs, so that they are built once.
	binVariable = "KEYPLANE_BIN"
)

func shard() string { return os.Getenv(shardVariable) }

// Build builds the programs of some packages and returns the folder that they are in. Only
// the first copy of a test builds them.
func Build(t testing.TB, packages ...string) (bin string) {
	t.Helper()
	if bin := os.Getenv(binVariable); bin != "" {
		return bin
	}
	bin = t.TempDir()
	out, err := exec.Command("go", append([]string{"build", "-o", bin}, packages...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// scriptsIn are the scripts in a folder.
func scriptsIn(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts in %s (%v)", dir, err)
	}
	return all
}

// ofShard are those scripts that this copy runs.
func ofShard(scripts []string) (out []string) {
	for i, file := range scripts {
		if shard() == "" || shard() == fmt.Sprint(i%shards) {
			out = append(out, file)
		}
	}
	return out
}

// runShards runs the test again, in up to n scratch networks at once.
func runShards(t *testing.T, bin string, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range min(n, shards) {
		all.Go(func() { runShard(t, bin, i) })
	}
	all.Wait()
}

func runShard(t *testing.T, bin string, number int) {
	run := flag.Lookup("test.run").Value.String()
	if !strings.Contains(run, "/") {
		run = "^" + t.Name() + "$"
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", "-test.v", "-test.run", run, "-test.timeout", "0")
	cmd.Env = append(os.Environ(), fmt.Sprint(shardVariable, "=", number), binVariable+"="+bin)
	cmd.SysProcAttr = scratch.Attr()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("scripts: %v\n%s", err, out)
		return
	}
	for line := range strings.Lines(string(out)) {
		if testing.Verbose() || strings.Contains(line, "SKIP") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
}

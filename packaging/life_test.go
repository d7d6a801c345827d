// Package packaging has only tests: the Debian package lives a whole life on a copy of this machine, and
// what is for containers is what it says.
package packaging

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// releases has the tests run that build releases: go test keeps the result of a test until a file that it opens
// itself changes, and does not see what a program that it starts builds. So they are for make test-packages.
var releases = flag.Bool("packages.build", false, "build releases, and test them")

// needReleases skips the test unless releases are built.
func needReleases(t *testing.T) {
	t.Helper()
	if !*releases {
		t.Skip("SKIPPED: this test builds a release; make test-packages runs it")
	}
}

// TestLife builds two releases of the Debian package and of the RPM, and runs life.sh with them, under the
// systemd, the dpkg and the rpm of this machine.
func TestLife(t *testing.T) {
	needReleases(t)
	testkit.Need(t, "root", os.Geteuid() == 0)
	for _, path := range []string{"/usr/bin/dpkg", "/usr/bin/rpm", "/lib/systemd/systemd", "/usr/sbin/ip", "/usr/bin/unshare"} {
		_, err := os.Stat(path)
		testkit.Need(t, path, err == nil)
	}
	testkit.Need(t, "overlayfs and cgroup2 in namespaces", mounts())
	nfpm, servers := tool(t, "../.cache/bin/nfpm"), filepath.Dir(testkit.Tool(t, "etcd"))
	old, next := t.TempDir(), t.TempDir()
	bin := testkit.Build(t, nil, "../cmd/agent", "../cmd/agentctl")
	packageOf(t, nfpm, bin, "1.0.0", old)
	change(t, filepath.Join(bin, "agent"), filepath.Join(bin, "agentctl"))
	packageOf(t, nfpm, bin, "1.0.1~rc1", next)
	out, err := exec.Command("./machine", "life.sh", old+":/opt/old", next+":/opt/new", servers+":/opt/servers").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// mounts reports whether this process may mount what a copy of the machine needs.
func mounts() bool {
	return exec.Command("unshare", "--mount", "sh", "-c", "mount -t tmpfs t /mnt && mkdir /mnt/a /mnt/b /mnt/c && "+
		"mount -t cgroup2 c /mnt/a && mount -t overlay o -o lowerdir=/,upperdir=/mnt/b,workdir=/mnt/c /mnt").Run() == nil
}

// tool returns the absolute path of a tool that make builds.
func tool(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	testkit.Need(t, filepath.Base(path)+", which `make nfpm` builds", err == nil)
	return path
}

// packageOf makes the packages of programs in a folder.
func packageOf(t *testing.T, nfpm, bin, version, folder string) {
	t.Helper()
	if out, err := exec.Command("./package", nfpm, bin, "amd64", version, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// change makes programs differ from those of another package, without a change of what they do: nothing reads what follows
// the sections of a program.
func change(t *testing.T, programs ...string) {
	t.Helper()
	for _, path := range programs {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("another release")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

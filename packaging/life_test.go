// Package packaging has only tests: the Debian package lives a whole life on a copy of this machine, and
// what is for containers is what it says.
package packaging

import (
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
	packageOf(t, nfpm, "1.0.0", old)
	packageOf(t, nfpm, "1.0.1~rc1", next, "-ldflags=-buildid=next")
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

// packageOf makes the packages of the present sources in a folder. An option of go build makes
// its programs differ from those of another package. The programs are static, as those of a release.
func packageOf(t *testing.T, nfpm, version, folder string, options ...string) {
	t.Helper()
	bin := t.TempDir()
	arguments := append([]string{"build", testkit.Tags, "-o", bin}, options...)
	for _, cmd := range []*exec.Cmd{
		exec.Command("go", append(arguments, "../cmd/agent", "../cmd/agentctl")...),
		exec.Command("./package", nfpm, bin, "amd64", version, folder),
	} {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
}

package linux_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// TestPodman runs the story of microservices with real containers, which podman runs and tells of by
// Docker's API. TestScripts has the same story with a fake.
func TestPodman(t *testing.T) {
	_, err := exec.LookPath("podman")
	testkit.Need(t, "podman (podman, runc)", err == nil)
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	engine, err := newPodman(storage(t))
	var id string
	if err == nil {
		id, err = engine.Run()
	}
	testkit.Need(t, fmt.Sprintf("a machine on which podman can run a container (%v)", err), err == nil)
	if err := engine.Kill(id); err != nil {
		t.Fatal(err)
	}
	p := params("testdata/microservices.txtar")
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		err := setup(env)
		if err == nil {
			env.Values[agentKey{}].(*agent).startEngine = func(path string) (engineOfContainers, error) {
				engine.socket = path
				return engine, engine.Listen()
			}
		}
		return err
	}
	testscript.Run(t, p)
}

// storage returns a folder that is removed after the test. Podman tidies up after a container in
// another process, which may still write when the container is gone.
func storage(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() { // before the one of TempDir, which tries only once
		for deadline := time.Now().Add(testkit.Patience); os.RemoveAll(dir) != nil && time.Now().Before(deadline); {
			<-time.After(10 * time.Millisecond)
		}
	})
	return dir
}

// podman is an engine with an image and a storage of its own. Its containers have the programs of
// this machine.
type podman struct {
	dir     string
	socket  string
	service *exec.Cmd // serves the API at the socket; nil: it does not
}

// newPodman makes the image in dir.
func newPodman(dir string) (*podman, error) {
	e := &podman{dir: dir}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	err := w.WriteHeader(&tar.Header{Name: "usr", Typeflag: tar.TypeDir, Mode: 0o755})
	for _, name := range []string{"bin", "lib", "lib64"} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "usr/" + name, Mode: 0o777}))
	}
	file := filepath.Join(dir, "image.tar")
	err = errors.Join(err, w.Close(), os.WriteFile(file, image.Bytes(), 0o600))
	if err == nil {
		_, err = e.podman("import", "--quiet", file, "programs:latest")
	}
	return e, err
}

// command returns a call of podman that touches nothing outside of the folder. Only runc knows all
// versions of cgroups side by side.
func (e *podman) command(args ...string) *exec.Cmd {
	all := []string{
		"--root", filepath.Join(e.dir, "root"), "--runroot", filepath.Join(e.dir, "run"), "--tmpdir", filepath.Join(e.dir, "tmp"),
		"--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
	}
	runc, err := exec.LookPath("runc")
	if err == nil {
		all = append(all, "--runtime", runc)
	}
	return exec.Command("podman", append(all, args...)...)
}

func (e *podman) podman(args ...string) (string, error) {
	out, err := e.command(args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("podman %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// Run starts a container with an environment. The limits can always be set: podman's own may be
// above those of the process. It ends by itself, so a test that is killed leaves none behind.
func (e *podman) Run(env ...string) (id string, err error) {
	file := filepath.Join(e.dir, "id")
	_ = os.Remove(file)
	args := []string{
		"run", "--detach", "--cidfile", file, "--network", "none", "--volume", "/usr:/usr:ro",
		"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
	}
	for _, one := range env {
		args = append(args, "--env", one)
	}
	_, err = e.podman(append(args, "programs:latest", "/usr/bin/sleep", "600")...)
	read, errRead := os.ReadFile(file)
	return string(read), errors.Join(err, errRead)
}

func (e *podman) Kill(id string) error {
	_, err := e.podman("rm", "--force", "--time", "0", id)
	return err
}

// Pid is 0 for a container that is gone.
func (e *podman) Pid(id string) int {
	out, _ := e.podman("inspect", "--format", "{{.State.Pid}}", id)
	pid, _ := strconv.Atoi(out)
	return pid
}

// Listen starts the service, and waits until it answers.
func (e *podman) Listen() error {
	e.service = e.command("system", "service", "--time", "0", "unix://"+e.socket)
	e.service.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := e.service.Start(); err != nil {
		return err
	}
	deadline := time.Now().Add(testkit.Patience)
	for {
		_, err := os.Stat(e.socket)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Stop ends the service. The containers go on.
func (e *podman) Stop() {
	if e.service != nil {
		_ = e.service.Process.Kill()
		_ = e.service.Wait()
		_ = os.Remove(e.socket)
		e.service = nil
	}
}

// Close ends the service and all containers.
func (e *podman) Close() {
	e.Stop()
	_, _ = e.podman("rm", "--all", "--force", "--time", "0")
}

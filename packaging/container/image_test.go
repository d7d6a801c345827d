// Package container has only a test: it builds the images, and plays the story of README.md with them.
package container

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// releases has the test build programs and images: go test does not see what they are built of, and would keep the result.
var releases = flag.Bool("packages.build", false, "build images, and test them")

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// A service is what docker-compose.yaml says of one container.
type service struct {
	Command     []string
	Build       struct{ Context, Dockerfile string }
	Environment map[string]string
	CapAdd      []string `yaml:"cap_add"`
	Volumes     []string
}

// A machine has buildah in the place of Docker: images, containers and volumes are in a folder of the test, and all
// containers share the test's network.
type machine struct {
	t        *testing.T
	dir      string
	services map[string]service
}

// The images are built for both architectures, and those of this machine run as docker-compose.yaml says.
func TestImages(t *testing.T) {
	m := newMachine(t)
	m.buildPrograms()
	for name, s := range m.services {
		if s.Build.Dockerfile != "" {
			m.buildImage(name, s)
		}
	}

	etcd := m.services["etcd"].Command
	m.start("etcd", exec.Command(testkit.Tool(t, etcd[0]), append(etcd[1:], "--data-dir", t.TempDir())...))
	m.start("vppsim", m.entryPoint("vppsim"))
	m.start("agent", m.entryPoint("agent"))
	m.becomesHealthy("agent")
	m.story()
}

// becomesHealthy waits until the health check of an image says so.
func (m *machine) becomesHealthy(name string) {
	m.t.Helper()
	check := m.config(name).Healthcheck.Test
	if len(check) < 2 || check[0] != "CMD" {
		m.t.Fatalf("the image has the health check %q", check)
	}
	var out []byte
	var err error
	if !testkit.Until(func() bool { out, err = m.beside(name, check[1:]...).CombinedOutput(); return err == nil }) {
		m.t.Fatalf("never healthy: %v\n%s", err, out)
	}
}

// A config is what an image says of its containers.
type config struct {
	Entrypoint  []string
	Healthcheck struct{ Test []string }
}

// config returns what an image says of its containers.
func (m *machine) config(name string) config {
	m.t.Helper()
	var image struct{ Docker struct{ Config config } }
	if err := json.Unmarshal(m.buildah("inspect", "--type", "image", name), &image); err != nil {
		m.t.Fatal(err)
	}
	return image.Docker.Config
}

// newMachine reads docker-compose.yaml, and makes the folders of its volumes.
func newMachine(t *testing.T) *machine {
	t.Helper()
	if !*releases {
		t.Skip("SKIPPED: this test builds images; make test-packages runs it")
	}
	testkit.Need(t, "scratch namespaces, and root", scratch.Inside() && os.Geteuid() == 0)
	_, err := exec.LookPath("buildah")
	testkit.Need(t, "buildah", err == nil)
	text, err := os.ReadFile("docker-compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	m := &machine{t, t.TempDir(), file.Services}
	for _, volume := range []string{"vpp", "state", "run", "dist"} {
		if err := os.Mkdir(filepath.Join(m.dir, volume), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// buildPrograms builds static programs for this architecture, as make dist does. Those of the other one are
// texts: nothing here could run them.
func (m *machine) buildPrograms() {
	m.t.Helper()
	bin := testkit.Build(m.t, nil, "../../cmd/agent", "../../cmd/agentctl", "../../cmd/vppsim")
	if err := os.Rename(bin, filepath.Join(m.dir, "dist", "linux-"+runtime.GOARCH)); err != nil {
		m.t.Fatal(err)
	}
	other := filepath.Join(m.dir, "dist", "linux-"+otherArch())
	if err := os.Mkdir(other, 0o755); err != nil {
		m.t.Fatal(err)
	}
	for _, program := range []string{"agent", "agentctl", "vppsim"} {
		if err := os.WriteFile(filepath.Join(other, program), []byte(program+" for "+otherArch()), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

// otherArch returns the architecture of the two that is not this one.
func otherArch() string {
	if runtime.GOARCH == "amd64" {
		return "arm64"
	}
	return "amd64"
}

// command returns a command of buildah. vfs needs no file system of its own, and chroot no runtime of containers.
func (m *machine) command(args ...string) *exec.Cmd {
	return exec.Command("buildah", append([]string{"--storage-driver", "vfs", "--root", m.dir + "/root", "--runroot", m.dir + "/runroot"}, args...)...)
}

// buildah runs a command of buildah and returns its output.
func (m *machine) buildah(args ...string) []byte {
	m.t.Helper()
	cmd := m.command(args...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("buildah %q: %v\n%s%s", args, err, out, &problems)
	}
	return out
}

// buildImage builds the image of a service for both architectures, and makes its containers.
func (m *machine) buildImage(name string, s service) {
	m.t.Helper()
	dockerfile := filepath.Join(s.Build.Context, s.Build.Dockerfile) // by way of dist, which may be missing
	m.buildah("bud", "--format", "docker", "--isolation", "chroot", "--platform", "linux/amd64,linux/arm64", "--manifest", "all-"+name,
		"-f", filepath.Clean(dockerfile), filepath.Join(m.dir, "dist"))
	for _, arch := range []string{"amd64", "arm64"} {
		if !strings.Contains(string(m.buildah("manifest", "inspect", "all-"+name)), `"architecture": "`+arch+`"`) {
			m.t.Errorf("the image of %s is not for %s", name, arch)
		}
	}
	m.buildah("bud", "--format", "docker", "--isolation", "chroot", "-t", name, "-f", filepath.Clean(dockerfile), filepath.Join(m.dir, "dist"))
	m.makeContainers(name, s)
}

// makeContainers makes the containers of a service from its image.
func (m *machine) makeContainers(name string, s service) {
	m.t.Helper()
	for _, container := range []string{name, name + asSecond} {
		from := []string{"from", "--name", container, "--add-host", "etcd:127.0.0.1", "--cap-drop", "all"}
		for _, capability := range s.CapAdd {
			from = append(from, "--cap-add", "CAP_"+capability)
		}
		m.buildah(append(from, name)...)
		for _, volume := range append(s.Volumes, "run:/run/keyplane") {
			// Of a volume of the image and one of the command line, buildah takes either.
			m.buildah("config", "--volume", strings.Split(volume, ":")[1]+"-", container)
		}
	}
}

// asSecond ends the names of containers with the same image and volumes, in which commands run beside the first. Two runs of
// buildah in one container are not independent: at its end, each removes the folders where it has mounted volumes.
const asSecond = "-second"

// entryPoint returns the command that runs the entry point of a service's image in the first container.
func (m *machine) entryPoint(name string, arguments ...string) *exec.Cmd {
	m.t.Helper()
	return m.inContainer(name, name, append(m.config(name).Entrypoint, arguments...))
}

// beside returns the command that runs a program in the second container of a service.
func (m *machine) beside(name string, args ...string) *exec.Cmd {
	m.t.Helper()
	return m.inContainer(name, name+asSecond, args)
}

// inContainer returns the command that runs a program in a container of a service, with its environment and volumes.
func (m *machine) inContainer(name, container string, args []string) *exec.Cmd {
	m.t.Helper()
	s := m.services[name]
	run := []string{"run", "--isolation", "chroot", "-v", m.dir + "/run:/run/keyplane"} // as if both were one container
	for _, volume := range s.Volumes {
		from, to, _ := strings.Cut(volume, ":")
		if strings.HasPrefix(from, ".") {
			from, _ = filepath.Abs(from)
		} else {
			from = filepath.Join(m.dir, from)
		}
		run = append(run, "-v", from+":"+to)
	}
	for variable, value := range s.Environment {
		run = append(run, "-e", variable+"="+value)
	}
	return m.command(append(append(run, container, "--"), args...)...)
}

// A run is a command that was started. When it ends, its error is in over.
type run struct {
	pid  int
	over <-chan error
}

// start starts a command, and ends it and its children with the test.
func (m *machine) start(name string, cmd *exec.Cmd) run {
	m.t.Helper()
	failure := testkit.Log(m.t)
	log, err := os.Create(filepath.Join(m.dir, name+".log"))
	if err != nil {
		m.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // buildah starts others
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		over <- cmd.Wait()
		close(over)
	}()
	m.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		<-over
		if m.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			fmt.Fprintf(failure, "[%s]\n%s", name, text)
		}
	})
	return run{cmd.Process.Pid, over}
}

// story types the commands of README.md. The first three are done already, with buildah.
func (m *machine) story() {
	lines := linesOf(m.t, "## On a host")
	if len(lines) != 9 || lines[0] != "make dist" || !strings.Contains(lines[1], " up ") || !strings.HasSuffix(lines[2], "exec agent agentctl'") {
		m.t.Fatalf("README.md has the commands %q: did the story change?", lines)
	}
	expected := map[string]string{
		"agentctl status":                 `State: +OK`,
		"agentctl values":                 `bd1 +CONFIGURED`,
		"agentctl values --state pending": `tap1 +PENDING`,
	}
	for _, line := range lines[3:] {
		m.types("agent", line, regexp.MustCompile(expected[line]))
	}
}

// types runs a line of a shell, in which agentctl is that of a container. A line that only reads is
// repeated until it prints what is expected: the agent follows a change a moment later.
func (m *machine) types(container, line string, want *regexp.Regexp) {
	m.t.Helper()
	program, _, _ := strings.Cut(line, " ")
	script := program + "() {"
	for _, word := range m.beside(container, program).Args {
		script += fmt.Sprintf(" '%s'", word)
	}
	var out []byte
	var err error
	ok := testkit.Until(func() bool {
		out, err = exec.Command("sh", "-c", script+" \"$@\"; }\n"+line).CombinedOutput()
		return err == nil && want.Match(out) || strings.Contains(line, " kvdb ")
	})
	if err != nil || !ok {
		m.t.Fatalf("%s: %v; expected %s; it printed\n%s", line, err, want, out)
	}
}

// linesOf returns the commands that README.md shows below a heading.
func linesOf(t *testing.T, heading string) (out []string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("README.md has no heading %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	for _, line := range regexp.MustCompile(`(?m)^    (.+)$`).FindAllStringSubmatch(below, -1) {
		out = append(out, line[1])
	}
	return out
}

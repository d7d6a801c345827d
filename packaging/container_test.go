package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/testkit"
)

// An instruction of a Dockerfile.
type instruction struct{ word, rest string }

// dockerfile returns the instructions of a Dockerfile. An unknown one is an error.
func dockerfile(t *testing.T, name string) (out []instruction) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("container", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "FROM", "ARG", "COPY", "WORKDIR", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT":
		default:
			t.Errorf("%s: instruction %s", name, word)
		}
		// The words of an exec form are JSON; what is not JSON would be a line for a shell.
		if form := regexp.MustCompile(`\[.*\]$`).FindString(rest); form != "" {
			var words []string
			if err := json.Unmarshal([]byte(form), &words); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
		}
		out = append(out, instruction{word, rest})
	}
	return out
}

// The files that the images copy are those that a release has, and the programs that they start are copied.
func TestDockerfilesCopyWhatAReleaseHas(t *testing.T) {
	build, err := os.ReadFile("build")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Dockerfile", "Dockerfile.vpp", "Dockerfile.vppsim"} {
		copied := map[string]bool{}
		for _, i := range dockerfile(t, name) {
			switch i.word {
			case "COPY":
				words := strings.Fields(i.rest)
				to := words[len(words)-1]
				for _, from := range words[:len(words)-1] {
					program, ok := strings.CutPrefix(from, "linux-${TARGETARCH}/")
					if !ok || !strings.Contains(string(build), "./cmd/"+program) {
						t.Errorf("%s copies %s, which `make dist` does not build", name, from)
					}
					copied[to+program] = true
				}
			case "HEALTHCHECK", "ENTRYPOINT":
				for _, path := range regexp.MustCompile(`(/usr)?/bin/(agent|agentctl|vppsim)\b`).FindAllString(i.rest, -1) {
					if !copied[path] {
						t.Errorf("%s: %s starts %s, which is not copied", name, i.word, path)
					}
				}
			}
		}
		if len(copied) == 0 {
			t.Errorf("%s copies nothing", name)
		}
	}
}

// The programs run in a folder with nothing else in it, as in the image from scratch.
func TestProgramsRunWithoutAnythingElse(t *testing.T) {
	needReleases(t)
	testkit.Need(t, "root", os.Geteuid() == 0)
	root := testkit.Build(t, nil, "../cmd/agentctl", "../cmd/vppsim")
	for _, command := range [][]string{{"/agentctl", "--version"}, {"/vppsim", "-h"}} {
		out, err := exec.Command("chroot", append([]string{root}, command...)...).CombinedOutput()
		if err != nil && command[1] != "-h" || len(out) == 0 {
			t.Errorf("%q: %v\n%s", command, err, out)
		}
	}
	out, err := exec.Command("chroot", root, "/agentctl", "status", "--ready").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no agent") {
		t.Errorf("the health check without an agent: %v\n%s", err, out)
	}
}

// The Compose file names volumes and services that it has, and Dockerfiles that exist.
func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("container/docker-compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Build       struct{ Context, Dockerfile string }
			Environment map[string]string
			CapAdd      []string `yaml:"cap_add"`
			Volumes     []string
			DependsOn   []string `yaml:"depends_on"`
		}
		Volumes map[string]struct{}
	}
	in := yaml.NewDecoder(strings.NewReader(string(text)))
	in.KnownFields(true)
	if err := in.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		for _, other := range s.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, ok := file.Volumes[from]; ok {
				continue
			}
			if _, err := os.Stat(filepath.Join("container", from)); err != nil {
				t.Errorf("%s: volume %s: %v", name, from, err)
			}
		}
		if s.Build.Dockerfile != "" {
			if _, err := os.Stat(filepath.Join("container", s.Build.Context, s.Build.Dockerfile)); err != nil {
				// dist/ does not exist before make dist; the path leads out of it again.
				if _, err := os.Stat(filepath.Join("container", "../..", strings.TrimPrefix(s.Build.Dockerfile, "../"))); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		} else if s.Image == "" {
			t.Errorf("%s has neither an image nor a Dockerfile", name)
		}
	}
}

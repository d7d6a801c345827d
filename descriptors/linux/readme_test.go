package linux_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/readme"
	"github.com/keyplane/keyplane/models/structured"
)

// What a README shows can be typed in: each value comes to stand.
func TestREADMEs(t *testing.T) {
	testkit.Netns(t)
	_, err := exec.LookPath("ip")
	testkit.Need(t, "ip (iproute2)", err == nil)
	for _, file := range []string{"README.md", "iface/README.md", "l3/README.md", "iptables/README.md", "microservice/README.md", "netns/README.md"} {
		t.Run(file, func(t *testing.T) {
			if strings.Contains(file, "iptables") || strings.Contains(file, "microservice") {
				needIPTables(t)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := newAgent()
			a.socket = filepath.Join(t.TempDir(), "docker.sock")
			for _, label := range regexp.MustCompile(`(?m)^\$ docker run .*-e (MICROSERVICE_LABEL=\w+)`).FindAllSubmatch(text, -1) {
				if err := errors.Join(a.runEngine([]string{"start"}), a.container([]string{"web", string(label[1])})); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.end)
			if a.engine != nil {
				if err := a.state([]string{"linux/microservice/web", "OBTAINED"}); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range regexp.MustCompile(`(?m)^\$ ip netns add (\w+)$`).FindAllSubmatch(text, -1) {
				if err := a.netns([]string{string(name[1])}); err != nil {
					t.Fatal(err)
				}
			}
			stand(t, a, readme.Examples(t, file)[0])
		})
	}
}

// stand applies items and checks that all of them stand. A chain that was not created together with
// the one to which it jumps is tried again, so its state may come later.
func stand(t *testing.T, a *agent, items []structured.Item) {
	t.Helper()
	for _, item := range items {
		if err := a.put([]string{item.Key, string(item.Value)}); err != nil {
			t.Fatalf("%s: %v", item.Key, err)
		}
	}
	if err := a.commit(nil); err != nil {
		t.Fatal(err)
	}
	for _, st := range a.s.Statuses("") {
		if fmt.Sprint(st.State) == "OBTAINED" {
			continue
		}
		if err := a.state([]string{st.Key, "CONFIGURED"}); err != nil {
			t.Error(err)
		}
	}
}

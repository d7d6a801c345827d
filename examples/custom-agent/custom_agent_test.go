package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestTutorial puts the value of the README into a real etcd, and waits for its file.
func TestTutorial(t *testing.T) {
	e := testkit.StartEtcd(t, testkit.EtcdOptions{})
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("etcd.conf", "endpoints: ["+e.Addr+"]\ninsecure-transport: true\n")
	write("orchestrator.conf", `state-dir: ""`)
	o := options()
	o.Without = []agent.Part{agent.Linux, agent.VPP, agent.HTTP, agent.GRPC} // of this test: it needs no privileges
	label := fmt.Sprintf("tutorial-%d", os.Getpid())
	o.Args = []string{"-config-dir=" + dir, "-socket=" + dir + "/socket", "-microservice-label=" + label, "-notes=" + dir + "/notes"}
	o.Stdout, o.Stderr = t.Output(), t.Output()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, o) }()

	etcdctl := func(args ...string) {
		t.Helper()
		out, err := exec.Command(testkit.Tool(t, "etcdctl"), append([]string{"--endpoints", e.Addr}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("etcdctl: %v\n%s", err, out)
		}
	}
	key, value := shown(t)
	key = strings.Replace(key, "/vpp1/", "/"+label+"/", 1)
	etcdctl("put", key, value)
	hello := filepath.Join(dir, "notes", "hello")
	eventually(t, "the note of the README", func() bool {
		text, err := os.ReadFile(hello)
		return err == nil && string(text) == "Hello, world"
	})
	etcdctl("del", key)
	eventually(t, "no note", func() bool {
		_, err := os.Stat(hello)
		return os.IsNotExist(err)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(testkit.Patience); !so(); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("there is never %s", what)
		}
	}
}

// shown returns the key and the value that the README puts.
func shown(t *testing.T) (key, value string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`etcdctl put (\S+) '(.*)'`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the README has no etcdctl put")
	}
	return string(found[1]), string(found[2])
}

// The code that the README shows is that of this folder, and short.
func TestREADMEShowsTheCode(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, name := range []string{"main.go", "note.proto"} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(code), "\n")
		for _, block := range regexp.MustCompile("(?s)```(go|proto) "+regexp.QuoteMeta(name)+"\n(.*?)```").FindAllSubmatch(readme, -1) {
			if !strings.Contains(string(code), string(block[2])) {
				t.Errorf("%s has changed; the README shows\n%s", name, block[2])
			}
		}
	}
	if lines > 150 {
		t.Errorf("the example has %d lines, more than 150", lines)
	}
}

func TestDescriptor(t *testing.T) {
	first := &Note{Name: "a", Text: "one"}
	values := []scheduler.Desired[*Note]{{Key: model().KeyOf("a"), Value: first}, {Key: model().KeyOf("b"), Value: &Note{Name: "b"}}}
	conformance.Run(t, conformance.Suite[*Note, none]{
		New:    func(t *testing.T) scheduler.Descriptor[*Note, none] { return folder(t.TempDir()).descriptor() },
		Values: values,
		Changes: []conformance.Change[*Note]{
			{Name: "text", Key: values[0].Key, From: first, To: &Note{Name: "a", Text: "two"}},
			{Name: "nothing", Key: values[0].Key, From: first, To: proto.CloneOf(first), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*Note]{
			{Name: "a path", Value: &Note{Name: "../a"}, Fields: []string{"name"}},
			{Name: "hidden", Value: &Note{Name: ".a"}, Fields: []string{"name"}},
		},
	})
	if !slices.Equal(model().KeyFields(), []string{"name"}) {
		t.Errorf("the name is made of %q", model().KeyFields())
	}
}

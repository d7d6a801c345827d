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
	"github.com/keyplane/keyplane/internal/testkit/session"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// started runs the agent until the test ends, without its parts that need privileges. It
// returns its folder and label.
func started(t *testing.T, files map[string]string) (dir, label string) {
	t.Helper()
	dir, label = t.TempDir(), fmt.Sprintf("%s-%d", t.Name(), os.Getpid())
	files["orchestrator.conf"] = `state-dir: ""`
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(content, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options()
	o.Without = []agent.Part{agent.Linux, agent.VPP, agent.HTTP}
	if files["grpc.conf"] == "" {
		o.Without = append(o.Without, agent.GRPC)
	}
	o.Args = []string{"-config-dir=" + dir, "-socket=" + dir + "/socket", "-microservice-label=" + label, "-notes=" + dir + "/notes"}
	o.Stdout, o.Stderr = testkit.Log(t), testkit.Log(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return dir, label
}

// tool runs a program that must succeed.
func tool(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// content returns a function that compares a file.
func content(path, want string) func() bool {
	return func() bool {
		text, err := os.ReadFile(path)
		return err == nil && string(text) == want
	}
}

// TestTutorial puts the value of the README into a real etcd, and waits for its file.
func TestTutorial(t *testing.T) {
	e := testkit.StartEtcd(t, testkit.EtcdOptions{})
	dir, label := started(t, map[string]string{"etcd.conf": "endpoints: [" + e.Addr + "]\ninsecure-transport: true\n"})
	etcdctl := func(args ...string) {
		t.Helper()
		tool(t, testkit.Tool(t, "etcdctl"), append([]string{"--endpoints", e.Addr}, args...)...)
	}
	key, value := shown(t)
	key = strings.Replace(key, "/vpp1/", "/"+label+"/", 1)
	etcdctl("put", key, value)
	hello := filepath.Join(dir, "notes", "hello")
	eventually(t, "the note of the README", content(hello, "Hello, world"))
	etcdctl("del", key)
	eventually(t, "no note", func() bool {
		_, err := os.Stat(hello)
		return os.IsNotExist(err)
	})
}

// agentctl does not have the model. The agent validates the note, and a file store has one too.
func TestNoteByAgentctlAndByFile(t *testing.T) {
	dir, label := started(t, map[string]string{
		"bolt.conf":   "db-path: DIR/bolt.db\n",
		"filedb.conf": "configuration-paths: [DIR/notes.yaml]\n",
		"notes.yaml":  "acmeConfig:\n  notes: [{name: filed, text: A}]\n",
	})
	eventually(t, "the note of the file", content(filepath.Join(dir, "notes", "filed"), "A"))
	as := []string{"--socket", dir + "/socket", "--service-label", label}
	agentctl := append(slices.Clone(as), "kvdb", "put")
	program := filepath.Join(session.Build(t, "../../cmd/agentctl"), "agentctl")
	tool(t, program, append(agentctl, model().KeyOf("b"), `{"name":"b","text":"B"}`)...)
	eventually(t, "the note of agentctl", content(filepath.Join(dir, "notes", "b"), "B"))
	out, err := exec.Command(program, append(agentctl, model().KeyOf(".b"), `{"name":".b"}`)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), `name is ".b"; expected the name of a file`) {
		t.Errorf("an invalid note: %v\n%s", err, out)
	}

	// These commands write values into the store by themselves, so they must know the model too.
	t.Setenv("VISUAL", "sed -i s/B/C/")
	tool(t, program, append(slices.Clone(as), "edit", model().KeyOf("b"))...)
	eventually(t, "the edited note", content(filepath.Join(dir, "notes", "b"), "C"))
	tool(t, program, append(slices.Clone(as), "apply", file(t, "acmeConfig: {notes: [{name: d, text: D}]}\n"), "--store", "bolt")...)
	eventually(t, "the applied note", content(filepath.Join(dir, "notes", "d"), "D"))
	tool(t, program, append(slices.Clone(as), "--store", "bolt", "fleet", "apply", file(t, "acmeConfig: {notes: [{name: e, text: E}]}\n"), "--labels", label)...)
	eventually(t, "the note for a fleet", content(filepath.Join(dir, "notes", "e"), "E"))
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

// The README has all of the code, in the order of the files, and the code is short. Two lines differ:
// those that say where this folder is.
func TestREADMEShowsTheCode(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for name, here := range map[string]struct{ line, instead string }{
		"main.go":    {"//go:generate go -C ../../tools run ./protogen ../examples\n\n", ""},
		"note.proto": {`"github.com/keyplane/keyplane/examples/custom-agent;main"`, `"example.com/notes;main"`},
	} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(code), "\n")
		var shown []string
		for _, block := range regexp.MustCompile("(?s)```(go|proto) "+regexp.QuoteMeta(name)+"\n(.*?)```").FindAllSubmatch(readme, -1) {
			shown = append(shown, string(block[2]))
		}
		if want := strings.Replace(string(code), here.line, here.instead, 1); strings.Join(shown, "\n") != want {
			t.Errorf("the blocks of %s in the README are\n%s\nand the file is\n%s", name, strings.Join(shown, "\n"), want)
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

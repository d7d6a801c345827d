package floors

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sessionDocs have console blocks that tests run as they are: by document, the test that reads it.
func sessionDocs() map[string]string {
	out := map[string]string{
		"docs/rest.md":                         "northbound/rest/docs_test.go",
		"docs/fleet.md":                        "cmd/agentctl/internal/fleet/docs_test.go",
		"connectors/bolt/README.md":            "cmd/agentctl/internal/cli/readme_test.go",
		"connectors/consul/README.md":          "connectors/consul/readme_test.go",
		"connectors/etcd/README.md":            "connectors/etcd/readme_test.go",
		"connectors/redis/README.md":           "connectors/redis/readme_test.go",
		"connectors/filedb/README.md":          "connectors/filedb/readme_test.go",
		"examples/hello-scheduler/README.md":   "examples/hello-scheduler/hello_test.go",
		"examples/mock-southbound/README.md":   "examples/mock-southbound/scenarios_test.go",
		"examples/custom-agent/README.md":      "examples/custom-agent/custom_agent_test.go",
		"descriptors/linux/README.md":          "descriptors/linux/readme_test.go",
		"descriptors/linux/iface/README.md":    "descriptors/linux/readme_test.go",
		"descriptors/linux/l3/README.md":       "descriptors/linux/readme_test.go",
		"descriptors/linux/iptables/README.md": "descriptors/linux/readme_test.go",
		"descriptors/linux/netns/README.md":    "descriptors/linux/readme_test.go",
		"packaging/container/README.md":        "packaging/container/image_test.go",
	}
	for _, name := range []string{"try", "configure", "operate", "troubleshoot", "migrate", "agentctl"} {
		out["docs/"+name+".md"] = "examples/first-light/sessions_test.go"
	}
	return out
}

// commandsElsewhere are patterns of commands that no script has in these words, each with the file that runs them, and a
// part of its text that does.
func commandsElsewhere() []struct{ command, file, text string } {
	return []struct{ command, file, text string }{
		{`^make run\b`, "examples/first-light/first_light_test.go", "func Test"},
		{`^make ([a-z-]+)`, "Makefile", "\n$1:"},
		{`^go run ./examples/mock-southbound [a-z-]+$`, "examples/mock-southbound/scenarios_test.go", "func Test"},
		{`^go run (\S+)$`, "$1/hello_test.go", "func Test"},
		{`^export AGENTCTL_SOCKET=`, "examples/first-light/sessions_test.go", `"AGENTCTL_SOCKET=`},
		{`^dpkg -i `, "packaging/life.sh", "dpkg -i /opt/old/"},
		{`^podman (run|exec) .*\blab\b`, "packaging/container/lab_test.go", "func TestLab"},
		{`^(make dist|docker compose -f packaging/container/|alias agentctl=|agentctl (kvdb (put|del) config/vpp/|values --state pending$))`, "packaging/container/image_test.go", `"README.md"`},
		{`^docker run -d --network none -e MICROSERVICE_LABEL=`, "descriptors/linux/microservice/microservice_test.go", "MICROSERVICE_LABEL"},
		{`^agentctl migrate --from vpp-agent-3.5 `, "agent/testdata/migrate.txtar", "agentctl migrate --from vpp-agent-3.5 etcd"},
		{`^agentctl config history 12$`, "agent/testdata/readme.txtar", "config history"},
		{`^(mkdir /tmp/client && cp -r proto|python3 -m grpc_tools)`, "northbound/grpc/python_test.go", "grpc_tools.protoc"},
		{`^grpcurl `, "northbound/grpc/transport_test.go", "func TestHealthAndReflection"}, // the same requests
		// What the test does not do: it has this folder instead of a module of its own, whose parts need a proxy of modules.
		{`^(mkdir notes|go mod |go get |go install google.golang.org/|etcdctl put /vnf-agent/vpp1/config/acme/)`, "examples/custom-agent/custom_agent_test.go", "func TestREADMEShowsTheCode"},
		// The reader edits the copy before. The folder itself is tested and generated.
		{`^(PATH=.* protoc |\./custom-agent |cat /tmp/notes/)`, "examples/custom-agent/custom_agent_test.go", "func Test"},
		{`^protoc -I proto --python_out`, "northbound/grpc/python_test.go", "grpc_tools.protoc"}, // the same compiler
		{`^(cp -r examples/skeleton|sed -i s/skeleton/mine/g|go generate ./examples/mine)`, "examples/skeleton/copy_test.go", "func TestCopy"},
	}
}

// A command is a line that a document has its readers type.
type command struct {
	doc, text string
	console   bool // in a block of a session, with its output
}

// commandsOf returns the commands of a document: those behind the prompt of a session, and lines of indented blocks
// that begin like a command.
func commandsOf(doc, text string) (out []command) {
	programs := regexp.MustCompile(`^(\.bin/[\w-]+|\./[\w-]+|PATH=\S+|cat|protoc|podman|tar|sha256sum|openssl|journalctl|make|go|agent|agentctl|etcdctl|redis-cli|consul|curl|grpcurl|docker|kubectl|dpkg|rpm|systemctl|mkdir|cp|cd|echo|printf|sed|ip|git|python3|export|alias|vppsim)( |$)`)
	fence := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fence = !fence
			continue
		}
		if typed, ok := strings.CutPrefix(line, "$ "); ok && fence {
			out = append(out, command{doc, typed, true})
		} else if typed := strings.TrimLeft(line, " "); !fence && len(line)-len(typed) >= 4 && programs.MatchString(typed) {
			typed, _, _ = strings.Cut(typed, "  ") // what follows is a remark
			out = append(out, command{doc, strings.TrimSpace(typed), false})
		}
	}
	return out
}

// allCommands returns the commands of all documents.
func allCommands(t *testing.T) (out []command) {
	t.Helper()
	for _, doc := range filesOf(t, func(path string) bool { return strings.HasSuffix(path, ".md") }) {
		text, err := os.ReadFile(filepath.Join("../..", doc))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, commandsOf(doc, string(text))...)
	}
	return out
}

// filesOf returns the files of the repository that fit, relative to its root.
func filesOf(t *testing.T, fits func(path string) bool) (out []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci", d.IsDir() && path == "dist":
			return fs.SkipDir
		case !d.IsDir() && fits(path):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// plain returns a command without what scripts write differently: quotes, spaces, and the folder of a program.
func plain(text string) string {
	return strings.NewReplacer("'", "", `"`, "", " ", "", "\t", "", ".bin/", "", "--socketagent.sock", "").Replace(strings.ReplaceAll(text, "--socket agent.sock ", ""))
}

// Each command that a document has its readers type runs in a test: in a session of the document, or in a script.
func TestCommandsOfDocumentsRunInTests(t *testing.T) {
	var scripts strings.Builder
	for _, path := range filesOf(t, func(path string) bool { return strings.HasSuffix(path, ".txtar") || path == "packaging/life.sh" }) {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		scripts.WriteString(plain(string(text)))
	}
	all := allCommands(t)
	for _, c := range all {
		if c.console {
			if test, ok := sessionDocs()[c.doc]; ok {
				if text, err := os.ReadFile(filepath.Join("../..", test)); err != nil || !strings.Contains(string(text), "README.md") && !strings.Contains(string(text), strings.TrimSuffix(filepath.Base(c.doc), ".md")) {
					t.Errorf("%s does not run %s: %v", test, c.doc, err)
				}
				continue
			}
		}
		if !strings.Contains(scripts.String(), plain(c.text)) && !inSession(all, c) && !elsewhere(t, c.text) && !strings.HasPrefix(c.text, "go test ") {
			t.Errorf("%s: no test runs: %s", c.doc, c.text)
		}
	}
	if len(all) < 100 {
		t.Errorf("only %d commands were found: did their form change?", len(all))
	}
}

// inSession reports whether a session of another place has the command.
func inSession(all []command, c command) bool {
	return slices.ContainsFunc(all, func(other command) bool {
		_, runs := sessionDocs()[other.doc]
		return other.console && runs && strings.HasPrefix(plain(other.text), plain(c.text))
	})
}

// elsewhere reports whether a command is in the table of commandsElsewhere.
func elsewhere(t *testing.T, text string) bool {
	t.Helper()
	for _, e := range commandsElsewhere() {
		found := regexp.MustCompile(e.command).FindStringSubmatchIndex(text)
		if found == nil {
			continue
		}
		in := func(template string) string {
			return string(regexp.MustCompile(e.command).ExpandString(nil, template, text, found))
		}
		content, err := os.ReadFile(filepath.Join("../..", in(e.file)))
		if err != nil || !strings.Contains(string(content), in(e.text)) {
			t.Errorf("%s is to have %q, which covers %q: %v", in(e.file), in(e.text), text, err)
		}
		return true
	}
	return false
}

// The tests and benchmarks that documents have people start exist. make test and make bench run all of them.
func TestGoCommandsOfDocuments(t *testing.T) {
	checked := 0
	for _, c := range allCommands(t) {
		if !strings.HasPrefix(c.text, "go test ") {
			continue
		}
		checked++
		var names []string
		for _, flag := range regexp.MustCompile(`-(?:run|bench) (?:'([^']+)'|(\S+))`).FindAllStringSubmatch(c.text, -1) {
			names = append(names, flag[1]+flag[2])
		}
		for _, folder := range regexp.MustCompile(` \./(\S+)`).FindAllStringSubmatch(c.text, -1) {
			if folder[1] == "examples/mine" {
				continue // the reader makes it
			}
			tests := functions(t, strings.TrimSuffix(folder[1], "/..."))
			for _, name := range names {
				first, _, _ := strings.Cut(name, "/")
				if first != "^$" && !slices.ContainsFunc(tests, regexp.MustCompile(strings.TrimPrefix(first, "^")).MatchString) {
					t.Errorf("%s: %s: ./%s has no %s", c.doc, c.text, folder[1], name)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d commands of go test were found: did their form change?", checked)
	}
}

// functions returns the names of the tests and benchmarks in a folder.
func functions(t *testing.T, folder string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)`).FindAllSubmatch(text, -1) {
			out = append(out, string(name[1]))
		}
	}
	if len(out) == 0 {
		t.Errorf("./%s has no tests", folder)
	}
	return out
}

// The targets of make that documents name in their sentences exist, too.
func TestTargetsInSentences(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, doc := range filesOf(t, func(path string) bool { return strings.HasSuffix(path, ".md") }) {
		text, err := os.ReadFile(filepath.Join("../..", doc))
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range regexp.MustCompile("`make ([a-z-]+)[ `]").FindAllStringSubmatch(string(text), -1) {
			checked++
			if !strings.Contains(string(makefile), "\n"+target[1]+":") {
				t.Errorf("%s: make has no target %s", doc, target[1])
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d targets were found: did their form change?", checked)
	}
}

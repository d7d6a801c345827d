package rest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

const docs = "../../docs/rest.md"

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	curl         = regexp.MustCompile(`^curl (?:--data-binary '(.*)' )?'localhost:9191(/[^']*)'$`)
)

// What the documentation shows is what is answered; with -update it is written there.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(w *world) {
		w.must(w.commit("", &interfaces.Interface{Name: "veth1", Type: interfaces.Interface_VETH}, &l3.Route{OutgoingInterface: "veth9", DstNetwork: "10.9.0.0/16"}))
		got := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
			return "```console\n" + w.session(consoleBlock.FindStringSubmatch(block)[1]) + "```"
		})
		if *update {
			w.must(os.WriteFile(docs, []byte(got), 0o600))
		} else if got != string(text) {
			t.Errorf("docs/rest.md shows what is not so; it should be\n%s", got)
		}
	})
}

// session runs the commands of a block, and returns the block as it should be.
func (w *world) session(block string) string {
	var out strings.Builder
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		m := curl.FindStringSubmatch(strings.TrimSpace(command))
		if m == nil {
			w.t.Fatalf("%q is none of the commands that this test knows", command)
		}
		method := "GET"
		if m[1] != "" {
			method = "POST"
		}
		_, answer := w.ask(method, m[2], m[1])
		out.WriteString(line + answer)
	}
	return out.String()
}

// Each path has a line in the documentation.
func TestDocumentationIsComplete(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range (&handler{}).endpoints() {
		if !strings.Contains(string(text), "`"+e.Method+" "+e.Path+"`") {
			t.Errorf("docs/rest.md does not mention %s %s", e.Method, e.Path)
		}
	}
}

package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/connectors/initfile"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/scheduler"
)

// A reading is what one of the readers says about a document.
type reading struct {
	names   []string // of the interfaces that it would declare
	mistake bool
	warns   bool
}

// oddDocuments are texts that people write, with what each reader has to say about them.
var oddDocuments = []struct {
	text  string
	names string // of the valid interfaces
	says  string // "", "warning", "mistake", or "nothing": it declares nothing
}{
	{"", "", "nothing"},
	{"# only a comment\n", "", "nothing"},
	{"---\n", "", "mistake"}, // it may be cut off
	{"--- {}\n", "", ""},
	{"x-defaults: &d {type: DUMMY}\n", "", "nothing"},
	{".hidden: {a: 1}\n", "", "nothing"},
	{"mock1Config: {items: [{name: c}]}\n", "", "nothing"},
	{"apiVersion: v1\nkind: ConfigMap\n", "", "nothing"},
	{"[]\n", "", ""},
	{"{}\n", "", ""},
	{"linuxConfig: {}\n", "", ""},
	{"linuxConfig: {interfaces: []}\n", "", ""},
	{"linuxConfig:\n  interfaces:\n    - {name: a, type: DUMMY}\n", "a", ""},
	{"{\"linuxConfig\": {\"interfaces\": [{\"name\": \"a\", \"type\": \"DUMMY\"}]}}\n", "a", ""},
	{"x-d: &d {type: DUMMY}\nlinuxConfig:\n  interfaces:\n    - {<<: *d, name: a}\n    - {<<: *d, name: b}\n", "a b", ""},
	{".d: &d {type: DUMMY}\nlinuxConfig: {interfaces: [{<<: *d, name: a}]}\n", "a", ""},
	{"- {key: config/linux/interfaces/v2/interface/a, value: {name: a, type: DUMMY}}\n", "a", ""},
	{"data:\n  - {key: config/linux/interfaces/v2/interface/a, value: {name: a, type: DUMMY}}\n", "a", ""},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}]}\n---\nlinuxConfig: {interfaces: [{name: b, type: DUMMY}]}\n", "a b", ""},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}]}\nmock1Config: {items: []}\n", "a", "warning"},
	{"apiVersion: v1\nlinuxConfig: {interfaces: [{name: a, type: DUMMY}]}\n", "a", "warning"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}], serviceChains: [1]}\n", "a", "warning"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY, enabled: yes}]}\n", "a", "warning"},
	{"linuxConfg: {interfaces: [{name: a, type: DUMMY}]}\n", "", "mistake"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}]}\nvppConfg: {}\n", "a", "mistake"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}], ruotes: []}\n", "a", "mistake"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}, {name: b, type: DUMY}]}\n", "a", "mistake"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}, {name: b, type: DUMMY, mtuu: 1}]}\n", "a", "mistake"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}, {name: a, type: DUMMY}]}\n", "", "mistake"},
	{"linuxConfig:\n  interfaces:\n    - {name: a, type: DUMMY}\n    -\n", "", "mistake"},
	{"linuxConfig:\n  interfaces:\n    - {name: a, type: DUMMY}\n  routes:\n", "", "mistake"},
	{"linuxConfig: {interfaces: {name: a}}\n", "", "mistake"},
	{"linuxConfig: {interfaces: [{name: a, type: DUMMY}]}\nlinuxConfig: {}\n", "", "mistake"},
	{"linuxConfig: {interfaces: [*d]}\n", "", "mistake"},
	{"linuxConfig: [\n", "", "mistake"},
	{"just words\n", "", "mistake"},
	{"- config/linux/interfaces/v2/interface/a\n", "", "mistake"},
	{"- {key: config/linux/interfaces/v2/interfce/a, value: {name: a}}\n", "", "mistake"},
}

// validate, plan, apply, the file of the start and filedb say the same about each text.
func TestAllReadersSayTheSame(t *testing.T) {
	url := newDeclarer(t)
	readers := map[string]func(*testing.T, string) reading{
		"validate": validated,
		"plan":     func(t *testing.T, text string) reading { return planned(t, url, text) },
		"apply":    func(t *testing.T, text string) reading { return applied(t, url, text) },
		"initfile": initial, "filedb": filed,
	}
	for _, doc := range oddDocuments {
		for name, read := range readers {
			got := read(t, doc.text)
			inFile := name == "initfile" || name == "filedb"
			mistake := doc.says == "mistake" || doc.says == "nothing" && !inFile // a file in a folder may have nothing
			if doc.says == "nothing" && inFile {
				got.warns, got.mistake = false, got.mistake && strings.TrimSpace(doc.text) != "" // filedb has a word for an empty file
			}
			if got.mistake != mistake {
				t.Errorf("%s of %q: a mistake: %t, want %t", name, doc.text, got.mistake, mistake)
			}
			if !mistake && got.warns != (doc.says == "warning") {
				t.Errorf("%s of %q: a warning: %t, want %t", name, doc.text, got.warns, !got.warns)
			}
			// Where one value is a mistake, apply and the start take none at all, and validate tells no values.
			if all := name == "plan" || name == "filedb"; doc.names != "" && (all || !mistake) && name != "validate" {
				if slices.Sort(got.names); strings.Join(got.names, " ") != doc.names {
					t.Errorf("%s of %q: %v, want %s", name, doc.text, got.names, doc.names)
				}
			}
		}
	}
}

// newDeclarer runs an agent without stores, and returns its address.
func newDeclarer(t *testing.T) string {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	s := scheduler.New(scheduler.Options{Log: quiet})
	m := &memory{stands: map[string]proto.Message{}}
	if err := m.register(s); err != nil {
		t.Fatal(err)
	}
	orch := orchestrator.New(s, orchestrator.Options{Log: quiet})
	trials := trial.New(trial.Options{Log: quiet})
	trials.Serve(orch)
	ctx, cancel := context.WithCancel(context.Background())
	tasks := []func(context.Context) error{s.Run, orch.Run, trials.Run}
	ended := make(chan error, len(tasks))
	for _, run := range tasks {
		go func() { ended <- run(ctx) }()
	}
	web := httptest.NewServer(rest.Handler(rest.Options{
		Scheduler: s, Sources: orch, Declarer: trials, Trials: trials, Previewer: orch, Contents: orch, Label: "vpp1", Log: quiet,
	}))
	t.Cleanup(func() {
		web.Close()
		cancel()
		for range tasks {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return web.URL
}

// send sends a text, and returns the status and the answer.
func send(t *testing.T, method, url, text string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body
}

func validated(_ *testing.T, text string) (out reading) {
	for _, f := range documents.Of("a.yaml", []byte(text)).Check(models.BuiltIn()) {
		out.mistake = out.mistake || !f.Warning
		out.warns = out.warns || f.Warning
	}
	return out
}

func planned(t *testing.T, url, text string) (out reading) {
	t.Helper()
	status, body := send(t, http.MethodPost, url+"/scheduler/plan?replace=1", text)
	if status != http.StatusOK {
		return reading{mistake: true}
	}
	var p wire.Plan
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	for _, op := range p.Operations {
		out.names = append(out.names, nameOf(op.Key)...)
	}
	out.mistake, out.warns = len(p.Invalid) > 0, len(p.Warnings) > 0
	return out
}

func applied(t *testing.T, url, text string) (out reading) {
	t.Helper()
	plan := planned(t, url, text) // apply prints its warnings
	status, _ := send(t, http.MethodPut, url+"/configuration?replace=1&datasrc=agentctl", text)
	if status != http.StatusOK {
		return reading{mistake: true}
	}
	_, body := send(t, http.MethodGet, url+"/scheduler/values", "")
	for word := range strings.SplitSeq(string(body), `"`) {
		out.names = append(out.names, nameOf(word)...)
	}
	slices.Sort(out.names)
	out.names, out.warns = slices.Compact(out.names), plan.warns
	if status, body := send(t, http.MethodPut, url+"/configuration?replace=1&datasrc=agentctl", "[]"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	return out
}

const ofDocuments = "/vnf-agent/vpp1/"

func initial(t *testing.T, text string) (out reading) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := initfile.New(initfile.Config{Path: path}, ofDocuments)
	if err != nil {
		return reading{mistake: true}
	}
	ctx, cancel := context.WithCancel(t.Context())
	for b := range file.Watch(ctx, ofDocuments) {
		for _, e := range b.Events {
			// The orchestrator decodes the value.
			_, err := models.BuiltIn().Decode(strings.TrimPrefix(e.Key, ofDocuments), e.Value)
			out.mistake = out.mistake || err != nil
			out.names = append(out.names, nameOf(e.Key)...)
		}
		cancel()
	}
	cancel()
	out.warns = len(file.Warnings) > 0
	return out
}

func filed(t *testing.T, text string) (out reading) {
	t.Helper()
	dir := t.TempDir()
	db, err := filedb.New(filedb.Config{Paths: []string{dir}}, ofDocuments, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	events, problems, warnings, err := db.WithFile(t.Context(), ofDocuments+"config/", filepath.Join(dir, "a.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out.mistake, out.warns = len(problems) > 0, len(warnings) > 0
	for _, e := range events {
		_, err := models.BuiltIn().Decode(strings.TrimPrefix(e.Key, ofDocuments), e.Value)
		if e.Err != nil || err != nil {
			out.mistake = true
			continue
		}
		out.names = append(out.names, nameOf(e.Key)...)
	}
	return out
}

// nameOf returns the name of an interface in its key, or nothing.
func nameOf(key string) []string {
	if _, name, ok := strings.Cut(key, "config/linux/interfaces/v2/interface/"); ok {
		return []string{name}
	}
	return nil
}

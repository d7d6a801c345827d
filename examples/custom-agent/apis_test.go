package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/internal/testkit/session"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// TestNoteByGRPC declares notes over gRPC, finds their model there, and has agentctl show them,
// which was built without that model.
func TestNoteByGRPC(t *testing.T) {
	dir, label := started(t, map[string]string{
		"grpc.conf": "network: unix\nendpoint: DIR/grpc.sock\n",
		"bolt.conf": "db-path: DIR/bolt.db\n", // the socket of agentctl needs a store
	})
	eventually(t, "a socket of gRPC", func() bool { return exists(dir + "/grpc.sock") })
	conn, err := rpc.NewClient("unix:"+dir+"/grpc.sock", rpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	known, err := models.BuiltIn().With(model().Model)
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewRemote(conn, client.Options{Models: known})
	hello := &Note{Name: "hello", Text: "over gRPC"}
	if err := c.Put(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	if !content(filepath.Join(dir, "notes", "hello"), "over gRPC")() {
		t.Error("the note has no file")
	}
	all, err := client.All[*Note](t.Context(), c)
	if err != nil || len(all) != 1 || !proto.Equal(all[0], hello) {
		t.Errorf("declared are %v, %v", all, err)
	}
	if err := c.Put(t.Context(), &Note{Name: ".hidden"}); err == nil || !slices.Equal(fieldsOf(err), []string{"name"}) {
		t.Errorf("an invalid note: %v", err)
	}
	if err := c.Delete(t.Context(), &Note{Name: ".hidden"}); err != nil {
		t.Error(err)
	}
	knownOverGRPC(t, generic.NewMetaServiceClient(conn))

	program := filepath.Join(session.Build(t, "../../cmd/agentctl"), "agentctl")
	for _, tt := range []struct{ args, want string }{
		{"model list acme.*", "acme.notes.note  config  keyplane.examples.notes.Note  config/acme/notes/v1/note/"},
		{"model inspect acme.notes.note -o wide", "in files     acmeConfig.notes"},
		{"model inspect acme.notes.note -o json", `"ConfigField": "acmeConfig.notes"`},
		{"model inspect acme.notes.note -o wide", "\ntext                string"},
		{"model inspect acme.notes.note -o wide", "A file with a text."},
		{"model inspect acme.notes.note -o json", "Content of the file."},
		{"schema acme.notes.note", "Content of the file."},
		{"schema acme.notes.note", `"title": "acme.notes.note"`},
		{"schema", `"acmeConfig"`},
		{"validate " + file(t, "acmeConfig: {notes: [{name: a, txt: b}]}\n"), "txt: expected a known field; did you mean text?"},
		{"validate " + file(t, "acmeConfig: {notes: [{name: a, text: b}]}\n"), ""},
		{"values acme.notes.note", "acme.notes.note  hello  CONFIGURED"},
		{"values", "acme.notes.note  hello  CONFIGURED"},
		{"dump acme.notes.note", `{"name":"hello","text":"over gRPC"}`},
		{"dump all --view NB", `{"name":"hello","text":"over gRPC"}`},
		{"dump acme.notes.note -f proto", "name: \"hello\"\ntext: \"over gRPC\""},
	} {
		args := append([]string{"--socket", dir + "/socket", "--service-label", label}, strings.Fields(tt.args)...)
		out, err := exec.Command(program, args...).CombinedOutput()
		mistake := strings.Contains(tt.want, "expected a known field")
		if (err != nil) != mistake || !strings.Contains(string(out), tt.want) || tt.want == "" && len(out) > 0 {
			t.Errorf("agentctl %s: %v\n%swant\n%s", tt.args, err, out, tt.want)
		}
	}
}

// file returns the path of a YAML file with this text.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// knownOverGRPC checks that clients learn the model of notes, and its message.
func knownOverGRPC(t *testing.T, meta generic.MetaServiceClient) {
	t.Helper()
	answer, err := meta.KnownModels(t.Context(), &generic.KnownModelsRequest{Class: "config"})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(answer.KnownModels, func(m *generic.ModelDetail) bool { return m.GetSpec().GetModule() == "acme.notes" })
	if at < 0 {
		t.Fatal("KnownModels lacks the model of notes")
	}
	want := &generic.ModelDetail{
		Spec:      &generic.ModelSpec{Module: "acme.notes", Version: "v1", Type: "note", Class: "config"},
		ProtoName: model().ProtoName(),
		Options:   []*generic.ModelDetail_Option{{Key: "nameTemplate", Values: []string{"{{.Name}}"}}, {Key: "protoFile", Values: []string{model().ProtoFile()}}},
	}
	if got := answer.KnownModels[at]; !proto.Equal(got, want) {
		t.Errorf("the model is %v", got)
	}
	file, err := meta.ProtoFileDescriptor(t.Context(), &generic.ProtoFileDescriptorRequest{FullProtoFileName: model().ProtoFile()})
	if err != nil || len(file.GetFileDescriptor().GetMessageType()) != 1 || file.GetFileDescriptor().GetMessageType()[0].GetName() != "Note" {
		t.Errorf("the file of the model is %v, %v", file, err)
	}
}

// TestNoteByHTTP declares a note in a document, and finds it in the schema of documents.
func TestNoteByHTTP(t *testing.T) {
	dir, _ := started(t, map[string]string{"bolt.conf": "db-path: DIR/bolt.db\n"})
	eventually(t, "a server on the socket", func() bool {
		conn, err := net.Dial("unix", dir+"/socket")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	socket := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", dir+"/socket")
	}}
	defer socket.CloseIdleConnections()
	answerOf := func(method, path, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := socket.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %s %s (%v)", method, path, answer.Status, text, err)
		}
		return string(text)
	}
	ask := func(method, path, body, want string) {
		t.Helper()
		if answer := answerOf(method, path, body); !strings.Contains(answer, want) {
			t.Errorf("%s %s: %s, want %s", method, path, answer, want)
		}
	}
	ask("PUT", "/configuration", "acmeConfig: {notes: [{name: a, text: A}]}", "{}")
	eventually(t, "the note of the document", content(filepath.Join(dir, "notes", "a"), "A"))
	ask("GET", "/metrics", "", "\nacme_notes_files 1\n")
	ask("GET", "/configuration", "", "acmeConfig:\n  notes:\n    - name: a\n      text: A\n")
	ask("GET", "/info/configuration/jsonschema", "", `"acmeConfig"`)
	ask("GET", "/info/configuration/jsonschema", "", "Content of the file.")
	ask("GET", "/info/models/acme.notes.note", "", `"Implemented": true`)
	ask("DELETE", "/configuration", "acmeConfig: {notes: [{name: a}]}", "{}")
	// Nothing is removed before the Bolt file is listed: it may declare the note, too.
	eventually(t, "no note in the configuration", func() bool { return answerOf("GET", "/configuration", "") == "{}\n" })
}

// fieldsOf returns the invalid fields of an error of a client.
func fieldsOf(err error) (out []string) {
	if e, ok := errors.AsType[*client.Error](err); ok {
		for _, f := range e.Failed {
			out = append(out, f.Fields...)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

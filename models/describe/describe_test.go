package describe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/known/sourcecontextpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/describe"
)

// TestEveryFieldIsDescribed looks for the comment of every field, and for an example of those that
// have no message.
func TestEveryFieldIsDescribed(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		fields, err := describe.Fields(m)
		if err != nil {
			t.Fatal(err)
		}
		if describe.Message(m) == "" {
			t.Errorf("%s has no comment", m.Name())
		}
		for _, f := range fields {
			if f.Comment == "" {
				t.Errorf("%s: %s has no comment", m.Name(), f.Name)
			}
		}
	}
}

func TestField(t *testing.T) {
	m, _ := models.BuiltIn().ByName("vpp.vrrp")
	all, err := describe.Fields(m)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]describe.Field{}
	for _, f := range all {
		got[f.Name] = f
	}
	want := describe.Field{
		Name: "interval", Type: "uint32", Allowed: "10..65535", Unit: "milliseconds", Example: "1000", Required: true,
		Comment: "Milliseconds between two advertisements, 10 to 65535. VPP counts hundredths of a second.",
	}
	if diff := cmp.Diff(want, got["interval"]); diff != "" {
		t.Error(diff)
	}
	if f := got["vr_id"]; !f.Key || f.Example != "7" {
		t.Errorf("vr_id: %+v", f)
	}
	if f := got["ip_addresses"]; f.Type != "[]string" || f.Allowed != "IP address" || f.Example != "10.1.0.254" {
		t.Errorf("ip_addresses: %+v", f)
	}
}

// withSource is a model of another program, of which generated code has no comments.
func withSource(source string) *models.Model {
	return models.Define[*sourcecontextpb.SourceContext](models.Definition{
		Module: "acme", Version: "v1", Type: "watermark", NameTemplate: "{{.FileName}}", Source: source,
	}).Model
}

// The text of a .proto file gives a model its comments, also for programs that get the file from the agent.
func TestSource(t *testing.T) {
	m := withSource("syntax = \"proto3\";\npackage google.protobuf;\n// A mark.\nmessage SourceContext {\n  // Its text.\n  string file_name = 1;\n}\n")
	if err := describe.Check(m); err != nil {
		t.Fatal(err)
	}
	fields, err := describe.Fields(m)
	if err != nil || len(fields) != 1 || fields[0].Comment != "Its text." || describe.Message(m) != "A mark." {
		t.Errorf("%+v, %v, message %q", fields, err, describe.Message(m))
	}
	sent, err := describe.Files(m)
	if err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(sent)
	if err != nil {
		t.Fatal(err)
	}
	received, err := files.FindDescriptorByName("google.protobuf.SourceContext")
	if err != nil {
		t.Fatal(err)
	}
	if text := describe.Texts()(received); text != "A mark." {
		t.Errorf("a client sees the comment %q", text)
	}
}

// A text that is not that of the message ends the start of the agent.
func TestFaultsOfSources(t *testing.T) {
	for source, want := range map[string]string{
		"syntax = \"proto3\";\nmessage {": "model acme.watermark: Source: google/protobuf/source_context.proto:2:9: ",
		"syntax = \"proto3\";\npackage acme;\nmessage Other {}": "model acme.watermark: Source: does not declare google.protobuf.SourceContext; " +
			"expected the text of google/protobuf/source_context.proto",
	} {
		if err := describe.Check(withSource(source)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

package inspect

import (
	"bytes"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/sample"
)

// TestSamples parses the sample of each model in all forms.
func TestSamples(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		if m.Class != "config" {
			continue
		}
		one, err := sample.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		var text, oneLine, asYAML bytes.Buffer
		for _, form := range []struct {
			word    string
			oneLine bool
			out     *bytes.Buffer
		}{{"json", false, &text}, {"json", true, &oneLine}, {"yaml", false, &asYAML}} {
			if err := printSample(form.out, show.As(form.word), form.oneLine, one, models.JSON); err != nil {
				t.Fatalf("%s: %v", m.Name(), err)
			}
		}
		parsed, err := m.Unmarshal(text.Bytes())
		if err != nil {
			t.Errorf("%s: %v\n%s", m.Name(), err, &text)
			continue
		}
		key, err := m.Key(parsed)
		if err != nil {
			t.Errorf("%s: %v\n%s", m.Name(), err, &text)
		}
		if _, err := models.BuiltIn().Decode(key, oneLine.Bytes()); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		var fields, same any
		if err := yaml.Unmarshal(asYAML.Bytes(), &fields); err != nil {
			t.Errorf("%s: %v\n%s", m.Name(), err, &asYAML)
		}
		if err := yaml.Unmarshal(text.Bytes(), &same); err != nil {
			t.Fatal(err)
		}
		if a, b := mustYAML(t, fields), mustYAML(t, same); a != b {
			t.Errorf("%s: YAML is\n%s\nJSON is\n%s", m.Name(), a, b)
		}
		if lines := bytes.Count(oneLine.Bytes(), []byte("\n")); lines != 1 {
			t.Errorf("%s has %d lines", m.Name(), lines)
		}
	}
}

// TestSamplesAsFiles checks the file that the help tells people to make of a sample.
func TestSamplesAsFiles(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		if m.Class != "config" {
			continue
		}
		one, err := sample.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		text, err := asFile(m, one)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := writeYAML(&file, text); err != nil {
			t.Fatal(err)
		}
		for _, f := range documents.Of("sample.yaml", file.Bytes()).Check(models.BuiltIn()) {
			if !f.Warning {
				t.Errorf("%s: %s\n%s", m.Name(), f.Text, &file)
			}
		}
		values, err := documents.Of("sample.yaml", file.Bytes()).Values(models.BuiltIn())
		if err != nil || len(values) != 1 || !proto.Equal(values[0].Message, one) {
			t.Errorf("%s: %v: %v\n%s", m.Name(), values, err, &file)
		}
	}
}

func mustYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package rest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
)

// Each shape is read by the type that wrote it, and written again the same.
func TestShapesAreReadAsTheyAreWritten(t *testing.T) {
	for file, into := range map[string]any{
		"version.json":           new(wire.Version),
		"sources.json":           new([]wire.Source),
		"sources-prefix.json":    new([]wire.Declaration),
		"dump.json":              new(wire.DumpIndex),
		"dump-sb.json":           new([]wire.DumpEntry),
		"dump-none.json":         new(wire.Failure),
		"status.json":            new([]wire.BaseValueStatus),
		"history.json":           new([]wire.Record),
		"resync.json":            new(wire.Record),
		"snapshot.json":          new([]wire.Node),
		"timeline-then.json":     new(wire.Node),
		"flag-stats-prefix.json": new(wire.FlagStats),
		"stats.json":             new(counts.Stats),
		"plan.json":              new(wire.Plan),
		"validate.json":          new([]wire.Invalid),
		"explain.json":           new(wire.Explanation),
	} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		want := text[bytes.IndexAny(text, "[{"):]
		d := json.NewDecoder(bytes.NewReader(want))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		var got strings.Builder
		reply.Encode(&got, "", into)
		if got.String() != string(want) {
			t.Errorf("%s is written again as\n%s", file, got.String())
		}
	}
}

func TestFlagsRefuseWhatTheyAreNot(t *testing.T) {
	for _, text := range []string{`[]`, `1`, `{"a":1}`, `{"a":{}}`} {
		var fs wire.Flags
		if err := json.Unmarshal([]byte(text), &fs); err == nil {
			t.Errorf("%s is read as %v", text, fs)
		}
	}
}

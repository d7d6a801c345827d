package filedb_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// TestWithFile compares the previewed content with the content after the file was written.
func TestWithFile(t *testing.T) {
	const (
		lo1 = `{"name":"lo1","type":"LOOPBACK"}`
		lo2 = `{"name":"lo2","type":"LOOPBACK"}`
	)
	file := func(values ...string) string {
		var out []string
		for _, v := range values {
			name := strings.Split(v, `"`)[3]
			out = append(out, fmt.Sprintf(`{"key":"config/linux/interfaces/v2/interface/%s","value":%s}`, name, v))
		}
		return `{"data":[` + strings.Join(out, ",") + `]}`
	}
	for _, test := range []struct{ name, path, text, want, problem string }{
		{"less", "b.json", file(), "lo1 a.json", ""},
		{"more", "b.json", file(lo2, `{"name":"lo3"}`), "lo1 a.json, lo2 b.json, lo3 b.json", ""},
		{"a new file, which comes first", "Z.yaml", "linuxConfig: {interfaces: [{name: lo1, type: LOOPBACK, mtu: 9}]}", "lo1 Z.yaml, lo2 b.json", ""},
		{"unreadable", "b.json", `{"data":[`, "lo1 a.json, lo2 b.json", "b.json"},
		{"a bad entry", "b.json", `{"data":[{"key":"config/linux/interfaces/v2/interface/lo4","value":{"mtu":{}}}, 7]}`, "lo1 a.json, lo2 b.json, lo4 b.json", "b.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a.json"), file(lo1))
			write(t, filepath.Join(dir, "b.json"), file(lo2))
			db := newDB(t, filedb.Config{Paths: []string{dir}})
			events, problems, _, err := db.WithFile(t.Context(), root+"config/", filepath.Join(dir, test.path), []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var out, keys []string
			for _, e := range events {
				out, keys = append(out, filepath.Base(e.Key)+" "+filepath.Base(e.Origin.File.Value())), append(keys, e.Key)
			}
			slices.Sort(out)
			slices.Sort(keys)
			if got := strings.Join(out, ", "); got != test.want {
				t.Errorf("content %s; expected %s", got, test.want)
			}
			if (len(problems) > 0) != (test.problem != "") || len(problems) > 0 && !strings.Contains(problems[0].Error(), test.problem) {
				t.Errorf("problems %v; expected %q", problems, test.problem)
			}
			write(t, filepath.Join(dir, test.path), test.text)
			pairs, err := db.List(t.Context(), root+"config/")
			if err != nil {
				t.Fatal(err)
			}
			var listed []string
			for _, p := range pairs {
				listed = append(listed, p.Key)
			}
			if !slices.Equal(listed, keys) {
				t.Errorf("after writing: keys %s; previewed %s", listed, keys)
			}
		})
	}

	dir := t.TempDir()
	db := newDB(t, filedb.Config{Paths: []string{dir}})
	for path, want := range map[string]string{
		"/elsewhere/a.yaml":              "/elsewhere/a.yaml: expected a file in " + dir,
		filepath.Join(dir, "readme.txt"): "expected a name that ends with .yaml, .yml or .json",
	} {
		if _, _, _, err := db.WithFile(t.Context(), root, path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %q", path, err, want)
		}
	}
}

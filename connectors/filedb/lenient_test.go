package filedb_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// TestOldBooleansAreLoggedOnce has a boolean of YAML 1.1 in a file. The file is listed twice, and then
// has another content with the same word.
func TestOldBooleansAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	db := newLoggingDB(t, filedb.Config{Paths: []string{dir}}, slog.New(slog.NewTextHandler(&log, nil)))
	warnings := func() int { return strings.Count(log.String(), "level=WARN") }
	list := func() (value string) {
		for b, err := range db.Watch(t.Context(), root) {
			if err != nil || len(b.Events) != 1 || b.Events[0].Err != nil {
				t.Fatalf("%+v %v", b, err)
			}
			return string(b.Events[0].Value)
		}
		return ""
	}
	const file = "linuxConfig:\n  interfaces:\n    - {name: a, type: DUMMY, enabled: yes"
	write(t, dir+"/a.yaml", file+"}\n")
	for range 2 {
		if value := list(); value != `{"name":"a","type":"DUMMY","enabled":true}` {
			t.Errorf("the value is %s", value)
		}
	}
	if warnings() != 1 || !strings.Contains(log.String(), "/a.yaml:3:39: yes is taken for true") {
		t.Errorf("%d warnings, want one that names the place:\n%s", warnings(), &log)
	}
	write(t, dir+"/a.yaml", file+", mtu: 9000}\n")
	if list(); warnings() != 2 {
		t.Errorf("%d warnings after a change, want 2:\n%s", warnings(), &log)
	}
}

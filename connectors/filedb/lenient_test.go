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

// TestPartsWithoutEffect has parts for other programs, and holders of anchors, in a file: removals
// from the file are followed as without them. A misspelt group or field may hide values of the one that
// is meant: none of those is removed, and all others are.
func TestPartsWithoutEffect(t *testing.T) {
	const (
		two = "linuxConfig:\n  interfaces:\n    - {name: a, type: DUMMY}\n    - {name: b, type: DUMMY}\n"
		one = "linuxConfig:\n  interfaces:\n    - {name: a, type: DUMMY}\n"
	)
	for _, tt := range []struct {
		head          string
		keys          int // after b was removed from the file
		warns, faulty bool
	}{
		{"", 1, false, false},
		{"x-defaults: &d {type: DUMMY}\n", 1, false, false},
		{".defaults: &d {type: DUMMY}\n", 1, false, false},
		{"mock1Config:\n  items: [{name: c}]\n", 1, true, false},
		{"apiVersion: v1\n", 1, true, false},
		{"vppConfig: {serviceChains: [1]}\n", 1, true, false},
		{"linuxConfg: {}\n", 2, false, true},
		{"netallocConfg: {}\n", 1, false, true},
		{"vppConfg: {}\n", 1, false, true},
		{"vppConfig: {interfces: []}\n", 1, false, true},
		{"vppConfig: {interfaces: [{type: SOFTWARE_LOOPBACK, nme: l}]}\n", 1, false, true},
		{"vppConfig: {interfaces: {}}\n", 2, false, true},
		{"dta: []\n", 2, false, true},
	} {
		var log bytes.Buffer
		dir := t.TempDir()
		db := newLoggingDB(t, filedb.Config{Paths: []string{dir}}, slog.New(slog.NewTextHandler(&log, nil)))
		list := func() (keys, problems int) {
			for b, err := range db.Watch(t.Context(), root) {
				if err != nil {
					t.Fatal(err)
				}
				return len(b.Events), len(b.Problems)
			}
			return 0, 0
		}
		write(t, dir+"/a.yaml", tt.head+two)
		if keys, problems := list(); keys != 2 || (problems > 0) != tt.faulty {
			t.Errorf("%q: %d keys, %d problems", tt.head, keys, problems)
		}
		write(t, dir+"/a.yaml", tt.head+one)
		if keys, _ := list(); keys != tt.keys {
			t.Errorf("%q: %d keys after a removal, want %d", tt.head, keys, tt.keys)
		}
		if warned := strings.Contains(log.String(), "unknown field"); warned != tt.warns {
			t.Errorf("%q: warned %v, want %v:\n%s", tt.head, warned, tt.warns, &log)
		}
	}
}

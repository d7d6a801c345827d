package filedb

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func fileOf(s state, entries ...entry) file {
	return file{state: s, good: &content{entries: entries}}
}

func TestWhoCounts(t *testing.T) {
	const key = "/vnf-agent/vpp1/config/a"
	from := func(origin string) entry { return entry{key: key, value: []byte("1"), origin: origin} }
	tests := []struct {
		name     string
		files    map[string]file
		want     string // origin of what counts
		problems int
	}{
		{"the first by path", map[string]file{"b": fileOf(settled, from("b:1")), "a": fileOf(settled, from("a:1"))}, "a:1", 1},
		{"the first in a file", map[string]file{"a": fileOf(settled, from("a:1"), from("a:2"))}, "a:1", 1},
		{"what is there before what is gone", map[string]file{"a": fileOf(gone, from("a:1")), "b": fileOf(settled, from("b:1"))}, "b:1", 0},
		{"what is gone, as long as nothing else is there", map[string]file{"a": fileOf(gone, from("a:1")), "b": {}}, "a:1", 0},
		{"another agent's key not at all", map[string]file{"a": fileOf(settled, entry{key: "/vnf-agent/vpp10/config/a", origin: "a:1"})}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries, conflicts := merge(tt.files, "/vnf-agent/vpp1/")
			got := ""
			if e := entries[key]; e != nil {
				got = e.origin
			}
			if got != tt.want || len(conflicts) != tt.problems {
				t.Errorf("%q counts, conflicts %v; want %q and %d", got, conflicts, tt.want, tt.problems)
			}
		})
	}
}

func TestACopiedFileIsNotAFloodOfProblems(t *testing.T) {
	var entries []entry
	for _, c := range "abcdefghij" {
		entries = append(entries, entry{key: "/" + string(c), origin: "x:1"})
	}
	_, conflicts := merge(map[string]file{"a": fileOf(settled, entries...), "b": fileOf(settled, entries...)}, "/")
	if len(conflicts) != 6 || conflicts[5].Error() != "b: so are 5 more of its keys" {
		t.Errorf("%v", conflicts)
	}
}

func TestDiff(t *testing.T) {
	old := map[string]*entry{"same": {value: []byte("1"), origin: "a:1"}, "moved": {value: []byte("1"), origin: "a:2"}, "gone": {value: []byte("1")}, "changed": {value: []byte("1")}}
	now := map[string]*entry{"same": old["same"], "moved": {value: []byte("1"), origin: "a:3"}, "changed": {value: []byte("2")}, "new": {err: os.ErrInvalid}}
	var got []string
	for _, e := range diff(old, now) {
		got = append(got, e.Key+"="+string(e.Value))
		if (e.Key == "new") != (e.Err != nil) {
			t.Errorf("%+v", e)
		}
	}
	if strings.Join(got, " ") != "changed=2 gone= new=" {
		t.Errorf("%v", got)
	}
}

// A directory that is made again may have the number of the one before.
func TestADirectoryMadeAgainIsWatchedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	n := newNotifier(Config{Rescan: time.Hour}, slog.New(slog.DiscardHandler))
	defer n.close()
	dirs := map[string]watch{dir: {id: identity{ino: 1}}}
	if !n.follow(dirs) || n.follow(dirs) {
		t.Fatal("a directory is new once")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := n.wait(ctx, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if !n.follow(dirs) {
		t.Error("the directory is not watched any more")
	}
}

package filedb

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unique"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/packed"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
)

func fileOf(s state, entries ...entry) *file {
	return &file{state: s, good: &content{entries: entries}}
}

func at(path string, line int) kvdbsync.Origin {
	return kvdbsync.Origin{File: unique.Make(path), Line: line}
}

func TestWhoCounts(t *testing.T) {
	const key = "/vnf-agent/vpp1/config/a"
	from := func(path string, line int) entry {
		return entry{key: key, value: packed.Of([]byte("1")), origin: at(path, line)}
	}
	tests := []struct {
		name     string
		files    files
		want     string // origin of what counts
		problems int
	}{
		{"the first by path", files{"b": fileOf(final, from("b", 1)), "a": fileOf(final, from("a", 1))}, "a:1", 1},
		{"the first in a file", files{"a": fileOf(final, from("a", 1), from("a", 2))}, "a:1", 1},
		{"what is there before what is gone", files{"a": fileOf(gone, from("a", 1)), "b": fileOf(final, from("b", 1))}, "b:1", 0},
		{"what is gone, as long as nothing else is there", files{"a": fileOf(gone, from("a", 1)), "b": {}}, "a:1", 0},
		{"another agent's key not at all", files{"a": fileOf(final, entry{key: "/vnf-agent/vpp10/config/a", origin: at("a", 1)})}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := merged(tt.files, "/vnf-agent/vpp1/")
			got, conflicts := "", m.conflicts()
			if e := m.counts[key]; e != nil {
				got = e.origin.String()
			}
			if got != tt.want || len(conflicts) != tt.problems {
				t.Errorf("%q counts, conflicts %v; want %q and %d", got, conflicts, tt.want, tt.problems)
			}
		})
	}
}

func merged(all files, prefix string) *merger {
	m := newMerger(prefix)
	m.update(all)
	return m
}

func TestACopiedFileIsNotAFloodOfProblems(t *testing.T) {
	files := files{}
	for _, path := range []string{"a", "b"} {
		var entries []entry
		for _, c := range "abcdefghij" {
			entries = append(entries, entry{key: "/" + string(c), origin: at(path, 1)})
		}
		files[path] = fileOf(final, entries...)
	}
	conflicts := merged(files, "/").conflicts()
	if len(conflicts) != 6 || conflicts[5].Error() != "b: so are 5 more of its keys" {
		t.Errorf("%v", conflicts)
	}
}

func TestWhatIsDifferent(t *testing.T) {
	m := merged(files{"a": fileOf(final,
		entry{key: "same", value: packed.Of([]byte("1")), origin: at("a", 1)}, entry{key: "moved", value: packed.Of([]byte("1")), origin: at("a", 2)},
		entry{key: "gone", value: packed.Of([]byte("1")), origin: at("a", 3)}, entry{key: "changed", value: packed.Of([]byte("1")), origin: at("a", 4)},
	)}, "")
	var got []string
	for _, e := range m.update(files{"a": fileOf(final,
		entry{key: "same", value: packed.Of([]byte("1")), origin: at("a", 1)}, entry{key: "moved", value: packed.Of([]byte("1")), origin: at("a", 3)},
		entry{key: "changed", value: packed.Of([]byte("2")), origin: at("a", 4)}, entry{key: "new", err: os.ErrInvalid, origin: at("a", 5)},
	)}) {
		got = append(got, e.Key+"="+string(e.Value))
		if (e.Key == "new") != (e.Err != nil) {
			t.Errorf("%+v", e)
		}
	}
	if strings.Join(got, " ") != "changed=2 gone= new=" {
		t.Errorf("%v", got)
	}
}

// However files come, change and go, what counts is what would count if they were read anew,
// and events lead there.
func TestMergingChangesIsMergingAnew(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m, files, mirror := newMerger("/"), files{}, map[string]string{}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			files = maps.Clone(files)
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				change(t, files)
			}
			for _, e := range m.update(files) {
				if mirror[e.Key] = string(e.Value); e.Value == nil {
					delete(mirror, e.Key)
				}
			}
			want := whatCounts(files)
			for key, e := range want {
				if m.counts[key] != e || mirror[key] != string(e.value.Bytes()) {
					t.Fatalf("%s: %v counts, and %q was told; want %v", key, m.counts[key], mirror[key], e)
				}
			}
			if len(m.counts) != len(want) || len(mirror) != len(want) {
				t.Fatalf("%d keys count, and %d were told; want %d", len(m.counts), len(mirror), len(want))
			}
			if got, want := m.conflicts(), merged(files, "/").conflicts(); sumOf(got) != sumOf(want) {
				t.Fatalf("conflicts %v, want %v", got, want)
			}
		}
	})
}

// change makes one file different.
func change(t *rapid.T, all files) {
	path := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "path")
	f, there := all[path]
	switch rapid.SampledFrom([]string{"saved", "gone", "back", "away"}).Draw(t, "what") {
	case "saved":
		var entries []entry
		for i, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"/x", "/y", "/z", "other"}), 0, 4).Draw(t, "keys") {
			value := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
			entries = append(entries, entry{key: key, value: packed.Of([]byte(value)), origin: at(path, i)})
		}
		all[path] = fileOf(final, entries...)
	case "gone", "back":
		if there {
			other := *f
			other.state = gone - f.state // final and gone
			all[path] = &other
		}
	case "away":
		delete(all, path)
	}
}

// whatCounts is the plain way to tell: the first of all entries, those of files that are gone last.
func whatCounts(all files) map[string]*entry {
	counts := map[string]*entry{}
	for _, s := range []state{final, gone} {
		for _, path := range slices.Sorted(maps.Keys(all)) {
			for i := range all[path].good.entries {
				e := &all[path].good.entries[i]
				if all[path].state == s && counts[e.key] == nil && e.key[0] == '/' {
					counts[e.key] = e
				}
			}
		}
	}
	return counts
}

// A directory that is made again may have the number of the one before.
func TestADirectoryMadeAgainIsWatchedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	n := newNotifier(Config{Rescan: time.Hour}, slog.New(slog.DiscardHandler))
	defer n.close()
	dirs := map[string]watch{dir: {id: identity{ino: 1}, listed: dir}}
	if !n.follow(dirs) || n.follow(dirs) {
		t.Fatal("a directory is new once")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if _, err := n.wait(ctx, &snapshot{whole: time.Now()}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if !n.follow(dirs) {
		t.Error("the directory is not watched any more")
	}
}

// TestAKeyManyTimesInOneFile has only the first entry of a file kept beside the first of another file, so that a change
// of the file costs what its length is, and the conflict goes with its entries.
func TestAKeyManyTimesInOneFile(t *testing.T) {
	const key = "/vnf-agent/vpp1/config/a"
	many := func(path string, n int) *file {
		entries := make([]entry, n)
		for i := range entries {
			entries[i] = entry{key: key, value: packed.Of([]byte("1")), origin: at(path, i+1)}
		}
		return fileOf(final, entries...)
	}
	m := newMerger("/vnf-agent/vpp1/")
	b := many("b", 50_000)
	for _, n := range []int{50_000, 40_000, 1, 30_000} {
		m.update(files{"a": many("a", n), "b": b})
		if e := m.counts[key]; e == nil || e.origin.String() != "a:1" || len(m.rivals[key]) != 2 {
			t.Fatalf("%v counts, of %d rivals", e, len(m.rivals[key]))
		}
		if got, want := len(m.conflicts()), 6+min(6, n-1); got != want {
			t.Errorf("%d times: %d conflicts, want %d", n, got, want)
		}
	}
	m.update(files{"b": many("b", 1)})
	if e := m.counts[key]; e == nil || e.origin.String() != "b:1" || len(m.rivals) != 0 || len(m.conflicts()) != 0 {
		t.Errorf("%v counts, conflicts %v", e, m.conflicts())
	}
	m.update(files{})
	if len(m.counts)+len(m.rivals)+len(m.repeats) != 0 {
		t.Errorf("of no files it keeps %v, %v, %v", m.counts, m.rivals, m.repeats)
	}
}

// TestProblemsAreComparedByHash yields problems again only when a text has changed.
func TestProblemsAreComparedByHash(t *testing.T) {
	v := view{merger: newMerger("/")}
	s := &snapshot{files: files{}}
	for _, step := range []struct {
		problems []error
		told     bool
	}{{nil, true}, {nil, false}, {[]error{errBusy}, true}, {[]error{errBusy}, false}, {[]error{errBusy, errBusy}, true}, {nil, true}} {
		s.problems = step.problems
		if b, changed := v.update(s); changed != step.told || changed && len(b.Problems) != len(step.problems) {
			t.Errorf("%v: told %v, problems %v", step.problems, changed, b.Problems)
		}
	}
}

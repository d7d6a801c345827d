package filedb_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// Each script is what someone does to files, and what a watch makes of it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Values[sessionKey{}] = &session{open: map[string]*os.File{}}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"watch": cmdWatch, "holds": cmdHolds, "lacks": cmdLacks, "bad": cmdBad, "kept": cmdKept,
			"problem": cmdProblem, "flawless": cmdFlawless, "sync": cmdSync,
			"begin": cmdBegin, "part": cmdPart, "end": cmdEnd,
		},
	})
}

// A session is what a script works with.
type session struct {
	*mirror
	dir   string
	open  map[string]*os.File // files being written
	syncs int
}

type sessionKey struct{}

func of(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

// watch [-follow] [-grace D] [-vanish D] [-rescan D] PATH...: begins to watch.
func cmdWatch(ts *testscript.TestScript, _ bool, args []string) {
	cfg := filedb.Config{Grace: time.Minute, VanishGrace: 200 * time.Millisecond}
	if args[0] == "-follow" {
		cfg.FollowLinks, args = true, args[1:]
	}
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		d, _ := time.ParseDuration(args[1])
		switch args[0] {
		case "-grace":
			cfg.Grace = d
		case "-vanish":
			cfg.VanishGrace = d
		case "-rescan":
			cfg.Rescan = d
		}
		args = args[2:]
	}
	for _, path := range args {
		cfg.Paths = append(cfg.Paths, ts.MkAbs(path))
	}
	db, err := filedb.New(cfg, root, slog.New(slog.DiscardHandler))
	ts.Check(err)
	s := of(ts)
	m, stop := newMirror(db)
	ts.Defer(func() { ts.Check(stop()) })
	m.until(ts, "the first batch", m.synced)
	s.mirror, s.dir = m, cfg.Paths[0]
}

// whole completes a short key.
func whole(key string) string {
	if strings.HasPrefix(key, "/") {
		return key
	}
	return root + key
}

// holds KEY VALUE: waits until the store has it.
func cmdHolds(ts *testscript.TestScript, _ bool, args []string) {
	s, key := of(ts), whole(args[0])
	s.until(ts, fmt.Sprintf("%s = %s", key, args[1]), func() bool { return string(s.events[key].Value) == args[1] })
}

// lacks KEY: waits until the store has it no more.
func cmdLacks(ts *testscript.TestScript, _ bool, args []string) {
	s, key := of(ts), whole(args[0])
	s.until(ts, "the end of "+key, func() bool { _, there := s.events[key]; return !there })
}

// bad KEY REGEXP: waits until there is an entry that is no value.
func cmdBad(ts *testscript.TestScript, _ bool, args []string) {
	s, key, re := of(ts), whole(args[0]), regexp.MustCompile(args[1])
	s.until(ts, "a bad "+key, func() bool { e := s.events[key]; return e.Err != nil && re.MatchString(e.Err.Error()) })
}

// kept KEY...: fails if one of them was ever gone.
func cmdKept(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range args {
		if n := s.deleted[whole(key)]; n > 0 {
			ts.Fatalf("%s was gone %d times", key, n)
		}
	}
}

// problem REGEXP: waits until one is told.
func cmdProblem(ts *testscript.TestScript, _ bool, args []string) {
	s, re := of(ts), regexp.MustCompile(args[0])
	s.until(ts, "the problem "+args[0], func() bool {
		for _, p := range s.problems {
			if re.MatchString(p.Error()) {
				return true
			}
		}
		return false
	})
}

// flawless: waits until there is no problem.
func cmdFlawless(ts *testscript.TestScript, _ bool, _ []string) {
	s := of(ts)
	s.until(ts, "the end of all problems", func() bool { return len(s.problems) == 0 })
}

// sync: returns when everything that was done before has been looked at.
func cmdSync(ts *testscript.TestScript, _ bool, _ []string) {
	s := of(ts)
	s.syncs++
	text := fmt.Sprintf("data: [{key: sync, value: {n: %d}}]", s.syncs)
	ts.Check(os.WriteFile(filepath.Join(s.dir, "zz-sync.yaml"), []byte(text), 0o600))
	cmdHolds(ts, false, []string{"sync", fmt.Sprintf(`{"n":%d}`, s.syncs)})
}

// begin FILE: opens it for writing and truncates it.
func cmdBegin(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	of(ts).open[args[0]] = f
}

// part FILE TEXT: writes some of it, and a line feed.
func cmdPart(ts *testscript.TestScript, _ bool, args []string) {
	_, err := fmt.Fprintln(of(ts).open[args[0]], args[1])
	ts.Check(err)
}

// end FILE: closes it.
func cmdEnd(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(of(ts).open[args[0]].Close())
}

package agent

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/keyplane/keyplane/connectors/filedb"
)

// Somebody else may have left files in the current directory. They configure the agent only if the
// directory is named.
func TestFilesOfTheCurrentDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	const initial = "linuxConfig: {interfaces: [{name: theirs, type: DUMMY}]}\n"
	for name, text := range map[string]string{"filedb.conf": "configuration-paths: [/tmp]\n", "initial-config.yaml": initial} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name, "link-to-"+name); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	load := func(f files, name string) error {
		f.log = log
		var cfg filedb.Config
		_, err := f.load("filedb-config", name, &cfg)
		return err
	}
	openInitial := func(f files) error {
		_, err := openInitfile(StoreOptions{files: f, Log: log, Load: func(any) (bool, error) { return false, nil }})
		return err
	}
	current, named := files{dir: "."}, files{dir: ".", given: map[string]bool{"config-dir": true}}
	for _, test := range []struct {
		mode    fs.FileMode
		refused bool
	}{{0o600, false}, {0o644, false}, {0o646, true}} {
		for _, name := range []string{"filedb.conf", "initial-config.yaml"} {
			if err := os.Chmod(name, test.mode); err != nil {
				t.Fatal(err)
			}
		}
		for what, err := range map[string]error{
			"filedb.conf can be written by all users;":         load(current, "filedb.conf"),
			"link-to-filedb.conf can be written by all users;": load(current, "link-to-filedb.conf"),
			"initial-config.yaml can be written by all users;": openInitial(current),
		} {
			if !test.refused && err != nil || test.refused && (err == nil || !strings.HasPrefix(err.Error(), what) || !strings.Contains(err.Error(), "set -config-dir=.")) {
				t.Errorf("mode %o: %v, want %s", test.mode, err, what)
			}
		}
		for what, err := range map[string]error{
			"with -config-dir":                      load(named, "filedb.conf"),
			"a path":                                load(current, "./filedb.conf"),
			"an initial file with -config-dir":      openInitial(named),
			"a missing file that nobody else wrote": load(current, "none.conf"),
		} {
			if err != nil {
				t.Errorf("mode %o, %s: %v", test.mode, what, err)
			}
		}
	}
}

// An owned file has an owner and a mode.
type owned struct {
	fs.FileInfo
	uid, gid, mode uint32
	link           bool
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: o.uid, Gid: o.gid, Mode: o.mode} }

func (o owned) Mode() fs.FileMode {
	if o.link {
		return fs.ModeSymlink | fs.FileMode(o.mode)
	}
	return fs.FileMode(o.mode)
}

func TestForeignFiles(t *testing.T) {
	for _, test := range []struct {
		file owned
		user int
		want string
	}{
		{owned{uid: 0, gid: 0, mode: 0o644}, 0, ""},
		{owned{uid: 0, gid: 0, mode: 0o664}, 0, ""},
		{owned{uid: 0, gid: 0, mode: 0o644}, 1000, ""},
		{owned{uid: 1000, gid: 1000, mode: 0o664}, 1000, ""},
		{owned{uid: 1000, gid: 1000, mode: 0o600}, 0, "belongs to the user 1000"},
		{owned{uid: 1000, gid: 1000, mode: 0o600}, 1001, "belongs to the user 1000"},
		{owned{uid: 0, gid: 100, mode: 0o664}, 0, "can be written by the group 100"},
		{owned{uid: 1000, gid: 100, mode: 0o640}, 1000, ""},
		{owned{uid: 0, gid: 0, mode: 0o602}, 0, "can be written by all users"},
		{owned{uid: 0, gid: 100, mode: 0o777, link: true}, 0, ""},
		{owned{uid: 1000, gid: 100, mode: 0o777, link: true}, 0, "belongs to the user 1000"},
	} {
		if got := foreign(test.file, test.user); got != test.want {
			t.Errorf("%+v for the user %d: %q, want %q", test.file, test.user, got, test.want)
		}
	}
}

// A file with passwords that all users can read is worth a warning.
func TestReadablePasswords(t *testing.T) {
	for _, tt := range []struct {
		text string
		mode fs.FileMode
		want bool
	}{
		{"password: pw\n", 0o644, true}, {"password: pw\n", 0o640, false}, {"endpoint: a:1\n", 0o644, false},
		{"# password: pw\n", 0o644, false}, {"password:\n", 0o644, false}, {"password-file: /etc/pw\n", 0o644, false},
		{"client-basic-auth:\n  - ann:pw\n", 0o644, true}, {"client-basic-auth: [\"ann:pw\"]\n", 0o644, true}, {"users:\n- name: ann\n", 0o604, true},
		{"token: t\n", 0o644, true}, {"sign-key: k\n", 0o644, true}, {"enable-token-auth: true\n", 0o644, false},
	} {
		path := filepath.Join(t.TempDir(), "x.conf")
		err := os.WriteFile(path, []byte(tt.text), tt.mode)
		if err == nil {
			err = os.Chmod(path, tt.mode) // whatever the umask is
		}
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		files{log: slog.New(slog.NewTextHandler(&log, nil))}.warnOfReaders(path)
		if got := strings.Contains(log.String(), "all users of this host can read"); got != tt.want || strings.Contains(log.String(), "pw ") {
			t.Errorf("%q with mode %o: %s; expected a warning: %v", tt.text, tt.mode, log.String(), tt.want)
		}
	}
}

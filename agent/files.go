package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/settingfile"
)

// errConfig reports a configuration with which the agent cannot start.
var errConfig = errors.New("configuration")

// files reads configuration files.
type files struct {
	dir   string          // folder of files whose name is not a path
	given map[string]bool // the flags that name one explicitly
	// Unknown keys that resemble known ones are errors: the older agent had no such file.
	strict bool
	// For unknown keys, and for files that a flag names and that do not exist.
	log *slog.Logger
}

// find returns the path of a file, and whether it exists. Without -config-dir a name is that of a file in
// the current directory. There somebody else may have left one: the error says who.
func (f files) find(name string) (path string, found bool, err error) {
	path, found = config.Find(name, f.dir)
	if !found || f.given["config-dir"] || strings.ContainsRune(name, filepath.Separator) {
		return path, found, nil
	}
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} { // a link, and what it leads to
		info, err := stat(path)
		if err != nil {
			continue // it vanished, or load reports why it cannot be read
		}
		if why := foreign(info, os.Geteuid()); why != "" {
			return path, true, fmt.Errorf("%s %s; in the current directory only files are read that nobody but root and the user %d can write: "+
				"set -config-dir=. to read all files of this directory", path, why, os.Geteuid())
		}
	}
	return path, true, nil
}

// foreign says how another user than root and this one can write a file; empty: none can.
func foreign(info fs.FileInfo, user int) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || info.Mode()&fs.ModeSymlink != 0 && (st.Uid == 0 || int(st.Uid) == user): // links have no mode
		return ""
	case st.Uid != 0 && int(st.Uid) != user:
		return fmt.Sprintf("belongs to the user %d", st.Uid)
	case st.Mode&0o002 != 0:
		return "can be written by all users"
	case st.Mode&0o020 != 0 && st.Gid != st.Uid: // that is the group of the owner alone
		return fmt.Sprintf("can be written by the group %d", st.Gid)
	}
	return ""
}

// secret is a line of a configuration file with a password, a token or a key.
var secret = regexp.MustCompile(`(?m)^[\s-]*(password|token|sign-key|client-basic-auth|users):[ \t]*[^\s#]|^[\s-]*(client-basic-auth|users):\s*\n\s*-`)

// warnOfReaders warns of a file with secrets that all users of this host can read.
func (f files) warnOfReaders(path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 {
		return
	}
	if text, err := settingfile.Read(path); err == nil && secret.Match(text) {
		f.log.Warn("all users of this host can read passwords in a configuration file: chmod o-r it, or name a file with the password",
			"file", path, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
	}
}

// A validator returns an error for each invalid key.
type validator interface{ Validate() error }

// load reads the file that a flag names into a struct that holds the defaults. It reports
// whether the file exists. Invalid values are errors. Unknown keys are logged: the older agent ignored them, so an
// installation that runs may have them, and must run on. The log names the key that may have been meant.
func (f files) load(flag, name string, into any) (found bool, err error) {
	path, found, err := f.find(name)
	if err != nil {
		return true, err
	}
	// Files are optional, so only an explicit name deserves a warning.
	if !found {
		if f.given[flag] {
			f.log.Warn("configuration file not found; a file in the current directory is ./NAME", "flag", flag, "file", name, "config_dir", f.dir)
		}
		return false, nil
	}
	unknown, err := config.Load(path, into)
	if err != nil {
		return true, err
	}
	f.warnOfReaders(path)
	var mistakes []error
	for _, u := range unknown {
		if u.Nearest != "" && f.strict {
			mistakes = append(mistakes, errors.New(u.String()))
			continue
		}
		attrs := []any{"file", u.File, "line", u.Line, "key", u.Key}
		if u.Nearest != "" {
			attrs = append(attrs, "nearest", u.Nearest)
		}
		f.log.Warn("configuration key is unknown and has no effect", attrs...)
	}
	if len(mistakes) > 0 {
		return true, errors.Join(mistakes...)
	}
	if v, ok := into.(validator); ok {
		if err := v.Validate(); err != nil {
			return true, fmt.Errorf("%s: %w", path, err)
		}
	}
	return true, nil
}

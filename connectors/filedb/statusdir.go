package filedb

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A statusDir is status in a folder: what stands under a key is in a file of its name, so
// that what a change costs does not follow how much there is.
type statusDir struct{ path string }

func (d statusDir) begin() error { return os.MkdirAll(d.path, 0o755) } //nolint:gosec // statuses hold no secrets, and others read them

// change makes one change after the other.
func (d statusDir) change(changes []kvdbsync.Pair) error {
	for _, c := range changes {
		path, err := d.file(c.Key)
		switch {
		case err != nil:
		case c.Value == nil:
			err = d.remove(path)
		default:
			err = replaceFile(path, append(c.Value, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file, and the folders that are empty then.
func (d statusDir) remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(path); dir != d.path && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

// under leaves out what is no file of a key.
func (d statusDir) under(prefix string) (pairs []kvdbsync.Pair, err error) {
	from := filepath.Join(d.path, dirOf(prefix[:strings.LastIndexByte(prefix, '/')+1]))
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		key, ok := d.key(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it has been removed meanwhile
		case err != nil:
			return err
		case e.IsDir() || !ok || !strings.HasPrefix(key, prefix):
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // a folder of the agent that others only read
		if err == nil {
			pairs = append(pairs, kvdbsync.Pair{Key: key, Value: []byte(strings.TrimSuffix(string(text), "\n"))})
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return pairs, err
}

// suffix is that of the files. No folder has it, so that a key may begin with another.
const suffix = ".json"

// file is where the value of a key is.
func (d statusDir) file(key string) (string, error) {
	at := strings.LastIndexByte(key, '/')
	if !strings.HasPrefix(key, "/") {
		return "", fmt.Errorf("key %q: expected a slash first", key)
	}
	return filepath.Join(d.path, dirOf(key[:at+1]), nameOf(key[at+1:])+suffix), nil
}

// dirOf is the folder of the keys that begin with prefix, which ends in a slash.
func dirOf(prefix string) string {
	names := strings.Split(strings.TrimSuffix(prefix, "/"), "/")
	for i, part := range names[1:] {
		name := nameOf(part)
		if base, ok := strings.CutSuffix(name, suffix); ok {
			name = base + "%2E" + suffix[1:]
		}
		names[i+1] = name
	}
	return filepath.Join(names...)
}

// nameOf is a part of a key as the name of a file: any text, none of which is special,
// hidden, or empty.
func nameOf(part string) string {
	name := strings.NewReplacer("%", "%25", "\x00", "%00").Replace(part)
	switch {
	case name == "":
		return "%"
	case name[0] == '.':
		return "%2E" + name[1:]
	}
	return name
}

// key is what file and dirOf make paths of; false: of none.
func (d statusDir) key(path string) (key string, ok bool) {
	rest, ok := strings.CutSuffix(path, suffix)
	if !ok {
		return "", false
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(rest, d.path+"/"), "/") {
		if strings.HasPrefix(name, ".") {
			return "", false
		}
		if name == "%" {
			name = ""
		}
		part, err := url.PathUnescape(name)
		if err != nil {
			return "", false
		}
		key += "/" + part
	}
	return key, true
}

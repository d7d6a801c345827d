package filedb

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyplane/keyplane/internal/plainfile"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A statusDir is status in a folder with one file per key, so the cost of a change does
// not depend on the number of keys.
type statusDir struct{ path string }

// begin makes the folder.
func (d statusDir) begin() error { return os.MkdirAll(d.path, 0o755) } //nolint:gosec // status contains no secrets, and other users read it

// change makes the changes one by one.
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

// remove removes a file, and the folders that become empty.
func (d statusDir) remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(path); dir != d.path && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

// under returns the pairs below prefix. It ignores files that do not belong to a key, and pipes
// and devices, which the next change of their key replaces.
func (d statusDir) under(prefix string) (pairs []kvdbsync.Pair, err error) {
	from := filepath.Join(d.path, dirOf(prefix[:strings.LastIndexByte(prefix, '/')+1]))
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		key, ok := d.key(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was removed meanwhile
		case err != nil:
			return err
		case e.IsDir() || !ok || !strings.HasPrefix(key, prefix):
			return nil
		}
		value, err := valueAt(path)
		if value != nil {
			pairs = append(pairs, kvdbsync.Pair{Key: key, Value: value})
		}
		return err
	})
	return pairs, err
}

func (d statusDir) get(key string) ([]byte, error) {
	path, err := d.file(key)
	if err != nil {
		return nil, err
	}
	return valueAt(path)
}

// valueAt returns the value in a file; nil: there is no such file.
func valueAt(path string) ([]byte, error) {
	text, err := plainfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, plainfile.ErrNoFile):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return bytes.TrimSuffix(text, []byte("\n")), nil
}

// suffix is the suffix of the files. No folder has it, so one key may be the beginning of
// another.
const suffix = ".json"

// file returns the path of the file of a key.
func (d statusDir) file(key string) (string, error) {
	at := strings.LastIndexByte(key, '/')
	if !strings.HasPrefix(key, "/") {
		return "", fmt.Errorf("key %q: expected a slash first", key)
	}
	return filepath.Join(d.path, dirOf(key[:at+1]), nameOf(key[at+1:])+suffix), nil
}

// dirOf returns the folder of the keys that begin with prefix, which ends in a slash.
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

// nameOf returns the file name for any part of a key. The name is never special, hidden,
// or empty.
func nameOf(part string) string {
	name := strings.ReplaceAll(strings.ReplaceAll(part, "%", "%25"), "\x00", "%00")
	switch {
	case name == "":
		return "%"
	case name[0] == '.':
		return "%2E" + name[1:]
	}
	return name
}

// key is the inverse of file and dirOf; ok is false if the path belongs to no key.
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

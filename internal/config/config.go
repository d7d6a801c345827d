// Package config reads the agent's configuration files: YAML, each into a struct with yaml
// tags for its keys. A field without a key in the file keeps its value, so callers set
// defaults before.
//
//	cfg := etcd.Config{DialTimeout: time.Second}
//	path, ok := config.Find("etcd.conf", "/etc/agent")
//	...
//	unknown, err := config.Load(path, &cfg)
//
// Types are strict: an error names the file, the line, the key, the value found and the
// values allowed. All errors of a file are reported at once. An unknown key is no error,
// because files outlive versions. It is returned together with the most similar known key.
// Durations are Go's ("1m30s") or plain numbers of nanoseconds. A key without a value
// keeps its default.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/settingfile"
	"github.com/keyplane/keyplane/internal/yamlplace"
)

// An Unknown is a key of a file without a field.
type Unknown struct {
	File    string
	Line    int
	Key     string // with its parents: "tls.cert-file"
	Nearest string // the most similar known key; empty: none is similar
}

// String has the place of the key, and the most similar known one.
func (u Unknown) String() string {
	s := fmt.Sprintf("%s:%d: unknown key %s", u.File, u.Line, u.Key)
	if u.Nearest != "" {
		s += fmt.Sprintf(" (did you mean %s?)", u.Nearest)
	}
	return s
}

// Find returns the path of the file that a flag names. A name without a slash is below
// dir. A path is tried as it is, then below dir. The current directory is only searched if
// the user names it, by a path or as dir: files of other people there must not configure
// the agent. found is false if the file does not exist. An unreadable file is found: Load
// returns the error.
func Find(value, dir string) (path string, found bool) {
	if value == "" {
		return "", false
	}
	places := []string{filepath.Join(dir, value)}
	if strings.ContainsRune(value, filepath.Separator) {
		places = slices.Insert(places, 0, value)
	}
	for _, place := range places {
		info, err := os.Stat(place)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		case err == nil && !info.IsDir():
			return place, true
		case !found:
			path, found = place, true
		}
	}
	return path, found
}

// Load reads a file into the struct that into points to.
func Load(path string, into any) ([]Unknown, error) {
	data, err := settingfile.Read(path)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%s: a folder: expected a file", path)
	}
	if err != nil {
		return nil, err
	}
	return Parse(path, data, into)
}

// Parse is Load for the content of a file. Messages use name as the file name.
func Parse(name string, data []byte, into any) ([]Unknown, error) {
	root, err := document(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	if root == nil {
		return nil, nil
	}
	d := decoder{file: name}
	d.value("", root, reflect.ValueOf(into).Elem())
	return d.unknown, errors.Join(d.errs...)
}

// document returns the only document of a file; nil: it is empty.
func document(data []byte) (*yaml.Node, error) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := in.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(data, err)
	}
	switch err := in.Decode(&more); {
	case err == nil:
		return nil, fmt.Errorf("%d: a second document: expected one only", more.Line)
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(data, err)
	}
	return doc.Content[0], nil
}

// syntaxError returns an error that begins with the line of the mistake, like all errors here.
func syntaxError(data []byte, err error) error {
	at := yamlplace.Of(bytes.NewReader(data), data, err)
	return fmt.Errorf("%d: %s", at.Line, at.Msg)
}

// Package config reads the agent's configuration files: YAML, each into a struct
// whose yaml tags name its keys. What the file does not say stays as it is in the
// struct, so defaults are put there before.
//
//	cfg := etcd.Config{DialTimeout: time.Second}
//	path, ok := config.Find("etcd.conf", "/etc/agent")
//	...
//	unknown, err := config.Load(path, &cfg)
//
// Types are strict: an error names the file, the line, the key, what stands there
// and what would be right, and all errors of a file are told at once. A key that
// no field has is not an error, since files outlive versions, but it is returned,
// with the key that was probably meant. Durations are Go's ("1m30s") or plain
// numbers of nanoseconds. A key with nothing behind it keeps its default.
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
	"regexp"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// An Unknown is a key of a file that means nothing here.
type Unknown struct {
	File    string
	Line    int
	Key     string // with those it stands under: "tls.cert-file"
	Nearest string // the known key that is most like it; empty: none is
}

func (u Unknown) String() string {
	s := fmt.Sprintf("%s:%d: unknown key %s", u.File, u.Line, u.Key)
	if u.Nearest != "" {
		s += fmt.Sprintf(" (did you mean %s?)", u.Nearest)
	}
	return s
}

// Find returns where the file that a flag names is: a name without a slash is below dir; a
// path is itself, or below dir. The current directory is only searched where the user says
// so, by a path or as dir: files that others put there must not configure the agent. false:
// the file does not exist. A file that cannot be read is found: Load returns the error.
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
		case errors.Is(err, fs.ErrNotExist):
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
	data, err := os.ReadFile(path)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("configuration: %s: a folder: expected a file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, data, into)
}

// Parse is Load for the content of a file; name stands for it in messages.
func Parse(name string, data []byte, into any) ([]Unknown, error) {
	root, err := document(data)
	if err != nil {
		return nil, syntaxError(name, err)
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
		return nil, err
	}
	if err := in.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: a second document: expected one only", max(more.Line, 1))
	}
	return doc.Content[0], nil
}

// syntaxError puts file and line first, as everywhere.
func syntaxError(name string, err error) error {
	parts := regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`).FindStringSubmatch(err.Error())
	if parts == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s:%s: %s", name, parts[1], parts[2])
}

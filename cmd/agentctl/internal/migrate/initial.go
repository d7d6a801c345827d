package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/files"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// startUp is what initfileregistry.conf says of the file with the values of the start.
type startUp struct {
	Disabled bool   `yaml:"disable-initial-configuration"`
	Path     string `yaml:"initial-configuration-file-path"`
}

// read reads the configuration file. What is wrong in it is a finding of its own.
func (u *startUp) read(text []byte) { _ = yaml.Unmarshal(text, u) }

// initial returns the findings about the values of the start. dir is the folder of the configuration files,
// where the agent looks for a name without a folder. A missing file declares nothing.
func (s *start) initial(dir string) ([]Finding, error) {
	name := cmp.Or(s.startUp.Path, "initial-config.yaml")
	if s.startUp.Disabled {
		return nil, nil
	}
	read := func() ([]byte, error) { return files.ReadIn(dir, name) }
	if strings.Contains(name, "/") {
		read = func() ([]byte, error) { return files.ReadPlain(name) }
	}
	text, err := read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return valuesIn(filepath.Base(name), text), nil
}

// refusal returns why the agent would refuse a value.
func refusal(all *models.Registry, key string, value []byte) error {
	v, err := all.Decode(key, value)
	if err != nil {
		return err
	}
	return limits.Check(v)
}

// valuesIn returns a finding for each value in a file, by its key, and for each other mistake in it.
func valuesIn(file string, text []byte) (out []Finding) {
	all := models.BuiltIn()
	items, faults := structured.For(all).Parse(text, document.YAML)
	for _, it := range items {
		err := it.Err
		if err == nil {
			err = refusal(all, it.Key, it.Value)
		}
		f, place := fact{same, ""}, fmt.Sprintf("%s:%d", file, it.Line)
		if err != nil {
			f = fact{refused, err.Error()}
		}
		if at, ok := errors.AsType[*document.Error](err); ok {
			f.why, place = at.Msg, fmt.Sprintf("%s:%d:%d", file, at.Line, at.Column)
		}
		out = append(out, finding(place, it.Key, f))
	}
	for _, err := range faults {
		out = append(out, finding(file, "", fact{stops, err.Error()}))
	}
	return out
}

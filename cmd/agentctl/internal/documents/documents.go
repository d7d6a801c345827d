// Package documents reads the files of values that commands such as plan send to the agent, and
// names file and line of the values that the agent refuses.
package documents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/files"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// separator divides YAML documents.
const separator = "\n---\n"

// A file is the text of one file.
type file struct {
	// The path as the user gave it, or "-" for standard input. Errors name it.
	name string
	text []byte
}

// Documents are the texts that one request has, one after the other.
type Documents []file

// Read reads files, and the files in folders. The name "-" is standard input, which is in. The
// error lists the files that are no YAML, with the place of the mistake: the agent knows only the
// lines of all texts together.
func Read(in io.Reader, names []string) (Documents, error) {
	out, err := ReadAny(in, names)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, d := range out {
		if _, err := document.Read(d.text, document.YAML); err != nil { // JSON is YAML
			errs = append(errs, fmt.Errorf("%s:%w", show.Line(d.name), err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// Of returns the document of a text. Errors name it.
func Of(name string, text []byte) Documents { return Documents{{name: name, text: text}} }

// ReadAny is Read for a caller that reports mistakes in the syntax itself.
func ReadAny(in io.Reader, names []string) (out Documents, err error) {
	for _, name := range names {
		var found Documents
		if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
			found, err = readFolder(name)
		} else {
			found = Documents{{name: name}}
			found[0].text, err = ReadFile(in, name)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// readFolder reads the files of a folder that have values, sorted by name.
func readFolder(folder string) (out Documents, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			text, err := files.ReadIn(folder, e.Name())
			if err != nil {
				return nil, err
			}
			out = append(out, file{name: filepath.Join(folder, e.Name()), text: text})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no file ends with .yaml, .yml or .json", folder)
	}
	return out, nil
}

// Text returns the texts as one.
func (ds Documents) Text() []byte {
	var all [][]byte
	for _, d := range ds {
		all = append(all, d.text)
	}
	return bytes.Join(all, []byte(separator))
}

// Whole is Text for a request that replaces all other values. If the files declare nothing, it is a document
// without values: the agent refuses an empty text, which may have been lost on its way.
func (ds Documents) Whole() []byte {
	if any, err := ds.Declare(models.BuiltIn()); !any && err == nil {
		return []byte("[]")
	}
	return ds.Text()
}

// ReadFile returns the content of a file, or of standard input for "-", which is in.
func ReadFile(in io.Reader, path string) ([]byte, error) {
	if path == "-" {
		return files.All("standard input", in)
	}
	return files.Read(path)
}

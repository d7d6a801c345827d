// Custom-agent is an agent with an item kind of its own: notes, which are files in a folder.
// It does everything that the standard agent does, too. The README goes through it.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

//go:generate go -C ../../tools run ./protogen ../examples

func main() { agent.Main(options()) }

// options are those of the standard agent, and notes.
func options() agent.Options {
	var dir folder
	return agent.Options{
		Name:   "custom-agent",
		Models: []*models.Model{model().Model},
		Flags: func(f *flag.FlagSet) {
			f.StringVar((*string)(&dir), "notes", "notes", "`FOLDER` of the notes, which this agent owns as a whole")
		},
		Descriptors: []agent.Addition{func(p agent.Parts) ([]agent.Task, error) {
			if err := os.MkdirAll(string(dir), 0o755); err != nil {
				return nil, err
			}
			files := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "acme_notes_files", Help: "Files in the folder of the notes."}, dir.files)
			_, err := scheduler.Register(p.Scheduler, dir.descriptor())
			return nil, errors.Join(err, p.Metrics.Register(files))
		}},
	}
}

// model makes the keys config/acme/notes/v1/note/NAME. Files have notes as
// acmeConfig: {notes: [...]}.
func model() models.Of[*Note] {
	return models.Define[*Note](models.Definition{
		Module: "acme.notes", Version: "v1", Type: "note", NameTemplate: "{{.Name}}", Field: "notes", Source: source,
	})
}

//go:embed note.proto
var source string

// A folder has a file for each note.
type folder string

// none is the metadata of a note: its verbs need only the value.
type none = struct{}

func (dir folder) descriptor() scheduler.Descriptor[*Note, none] {
	return scheduler.Descriptor[*Note, none]{
		Name: "acme-note", Model: model(), Validate: validate,
		Create:   func(_ context.Context, _ string, n *Note) (none, error) { return none{}, dir.write(n) },
		Update:   func(_ context.Context, _ string, _, n *Note, _ none) (none, error) { return none{}, dir.write(n) },
		Delete:   func(_ context.Context, _ string, n *Note, _ none) error { return dir.remove(n) },
		Retrieve: dir.retrieve,
	}
}

// validate refuses a name that is no file of the folder.
func validate(_ string, n *Note) error {
	if strings.Contains(n.GetName(), "/") || strings.HasPrefix(n.GetName(), ".") {
		return &models.FieldError{Field: "name", Value: n.GetName(), Expected: "the name of a file, without slashes and without a dot at the start"}
	}
	return nil
}

func (dir folder) path(n *Note) string { return filepath.Join(string(dir), n.GetName()) }

// files counts the notes that exist, for Prometheus. A folder that cannot be read has none.
func (dir folder) files() float64 {
	files, _ := os.ReadDir(string(dir))
	return float64(len(files))
}

func (dir folder) write(n *Note) error { return os.WriteFile(dir.path(n), []byte(n.GetText()), 0o600) }

// remove deletes the file. A missing file is as desired.
func (dir folder) remove(n *Note) error {
	if err := os.Remove(dir.path(n)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// retrieve reads all files, so that lost and changed ones are restored.
func (dir folder) retrieve(context.Context, []scheduler.Desired[*Note]) scheduler.Retrieved[*Note, none] {
	return func(yield func(scheduler.Found[*Note, none], error) bool) {
		files, err := os.ReadDir(string(dir))
		if err != nil {
			yield(scheduler.Found[*Note, none]{}, err)
			return
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(string(dir), f.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted meanwhile
			}
			if !yield(scheduler.Found[*Note, none]{Value: &Note{Name: f.Name(), Text: string(text)}}, err) || err != nil {
				return
			}
		}
	}
}

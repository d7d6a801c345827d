// Package saved keeps plans in files: agentctl plan writes them, and agentctl apply makes their changes if the agent would
// still plan the same.
package saved

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/files"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Ending is how the names of such files end.
const Ending = ".plan"

// version is that of the form of a file.
const version = 1

// A Plan is a change of declared values with its effect.
type Plan struct {
	Version int
	Label   string // of the agent that made the plan; empty: it names none
	Source  string // in which the values are declared: a store, or a data source of the agent
	Store   bool   // Source is a store
	// Document has the values, in the form of PUT /configuration, with their secrets.
	Document string
	// Operations are those that the agent planned, without secrets.
	Operations []wire.Operation
}

// Write writes the plan into a file that only its owner can read. An earlier file is replaced as a whole.
func (p Plan) Write(path string) error {
	p.Version = version
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".agentctl-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if wrong := f.Close(); err == nil {
		err = wrong
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Read reads a plan from a file.
func Read(path string) (p Plan, err error) {
	text, err := files.Read(path)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil || p.Version == 0 || p.Source == "" {
		return p, fmt.Errorf("%s: this is no plan: expected a file that agentctl plan -o FILE%s has written", path, Ending)
	}
	if p.Version != version {
		return p, fmt.Errorf("%s: the version of its form is %d; expected %d: plan again with this agentctl", path, p.Version, version)
	}
	return p, nil
}

// Same reports whether the agent plans the same operations as before: on the same keys, with the same values and states before
// and after, in the same order.
func (p Plan) Same(now []wire.Operation) bool {
	before, err := json.Marshal(p.Operations)
	if err != nil {
		return false
	}
	text, err := json.Marshal(now)
	return err == nil && (len(now) == 0 && len(p.Operations) == 0 || bytes.Equal(before, text))
}

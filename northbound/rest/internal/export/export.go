// Package export writes declared values as one YAML document, which can be declared again
// unchanged: as a file of filedb, by PUT /configuration, and by agentctl apply.
//
//	out, err := export.Exporter{Scheduler: sched, Contents: orch}.Export(ctx, export.Selection{Source: "etcd"})
//
// Values of models with a place in the structured form are in its groups. All others follow in a
// second document, a list of {key, value}. A declared value that is not in the document, or only
// as an earlier version, has a note: so a document is never silently incomplete.
//
// Tests declare a sample of every model, and read the document again in each of the three ways.
package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// Contents tells what each source declares. *orchestrator.Orchestrator implements it.
type Contents interface {
	Content(ctx context.Context, source string) ([]orchestrator.Held, error)
}

// An Exporter reads declared values. Its methods may be called from any goroutine.
type Exporter struct {
	Scheduler *scheduler.Scheduler
	// Contents is needed only to select a source.
	Contents Contents
	// Secrets includes secrets. Otherwise they are "(secret)", which no agent accepts back.
	Secrets bool
	// CamelCase names fields in lowerCamelCase, as vpp-agent 3.5. Otherwise they have the names of the .proto files.
	CamelCase bool
}

// A Selection selects declared values.
type Selection struct {
	// Source selects what this source declares, whether or not it takes effect. Empty: the
	// values that take effect.
	Source string
	// Models are names of models, and Keys are keys without the prefix of an agent. Both
	// empty: all values.
	Models, Keys []string
}

// ErrNoContents is the error of a Selection with a source if Contents is nil.
var ErrNoContents = errors.New("this agent has no sources")

// ErrNotDeclared is the error of a Selection with a key that has no value.
var ErrNotDeclared = errors.New("no value is declared")

// configFolder is the folder of declared values below the prefix of the agent.
const configFolder = "config/"

// Export returns the selected values.
func (e Exporter) Export(ctx context.Context, s Selection) (wire.Export, error) {
	held, err := e.held(ctx, s.Source)
	if err != nil {
		return wire.Export{}, err
	}
	held, err = s.of(held, e.Scheduler.Models())
	if err != nil {
		return wire.Export{}, err
	}
	return e.document(held)
}

// held returns the entries of a source, or those that take effect, sorted by key.
func (e Exporter) held(ctx context.Context, source string) (out []orchestrator.Held, err error) {
	if source != "" {
		if e.Contents == nil {
			return nil, ErrNoContents
		}
		return e.Contents.Content(ctx, source)
	}
	for _, st := range e.Scheduler.Statuses(configFolder) {
		// Derived values are not declared by anybody. A value that was refused from the beginning
		// has no desired value, but it is declared.
		if st.Base != "" || st.Desired == nil && st.State != scheduler.Invalid && st.State != scheduler.Unimplemented {
			continue
		}
		h := orchestrator.Held{Key: st.Key, Message: st.Desired}
		if st.State == scheduler.Invalid || st.Desired == nil {
			h.Err = st.Err
		}
		out = append(out, h)
	}
	return out, nil
}

// of returns the selected ones of all entries. Each key must be one of theirs.
func (s Selection) of(all []orchestrator.Held, known *models.Registry) (out []orchestrator.Held, err error) {
	if len(s.Models)+len(s.Keys) == 0 {
		return all, nil
	}
	for _, name := range s.Models {
		if _, ok := known.ByName(name); !ok {
			return nil, fmt.Errorf("%w: %q", models.ErrNoModel, name)
		}
	}
	for _, h := range all {
		m, _, ok := known.ByKey(h.Key)
		if slices.Contains(s.Keys, h.Key) || ok && slices.Contains(s.Models, m.Name()) {
			out = append(out, h)
		}
	}
	for _, key := range s.Keys {
		if !slices.ContainsFunc(out, func(h orchestrator.Held) bool { return h.Key == key }) {
			return nil, fmt.Errorf("%w under the key %s", ErrNotDeclared, key)
		}
	}
	return out, nil
}

// document writes entries as YAML, with the notes as comments at its top.
func (e Exporter) document(held []orchestrator.Held) (out wire.Export, err error) {
	known := e.Scheduler.Models()
	var items []structured.Item
	var others []pair
	for _, h := range held {
		value := h.Message
		if h.Err != nil || value == nil {
			out.Notes = append(out.Notes, noteOf(h))
		}
		if value == nil {
			continue
		}
		if !e.Secrets {
			shown := models.Redacted(value)
			if shown != value {
				out.Hidden = append(out.Hidden, h.Key)
			}
			value = shown
		}
		text, err := e.json(value)
		if err != nil {
			return out, fmt.Errorf("%s: %w", h.Key, err)
		}
		m, ok := modelOf(known, value)
		if !ok {
			others = append(others, pair{h.Key, text})
			continue
		}
		items = append(items, structured.Item{Model: m, Key: h.Key, Value: text})
	}
	groups, err := structured.For(known).Format(items)
	if err != nil {
		return out, err
	}
	list, err := listOf(others)
	if err != nil {
		return out, err
	}
	if len(held) == 1 && held[0].Message != nil && len(out.Hidden) == 0 {
		out.Version = Version(held[0].Message)
	}
	out.Text = comments(out) + joined(string(groups), list)
	return out, nil
}

// json returns a value as one line of JSON.
func (e Exporter) json(value proto.Message) ([]byte, error) {
	if e.CamelCase {
		return models.CamelCaseJSON(value)
	}
	return models.JSON(value)
}

// Version returns a text that equal values share, and others do not. Another release of the agent
// may make another one of the same value.
func Version(m proto.Message) string {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // not of a value that was decoded
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// modelOf returns the model of a value if it has a place in the structured form.
func modelOf(known *models.Registry, value proto.Message) (*models.Model, bool) {
	m, ok := known.ForMessage(value)
	if !ok {
		return nil, false
	}
	group, _ := m.ConfigField()
	return m, group != ""
}

// noteOf says what the document lacks of an entry.
func noteOf(h orchestrator.Held) wire.Invalid {
	note := wire.Invalid{Key: h.Key, Fields: models.Fields(h.Err)}
	reason := "no valid value is known"
	if h.Err != nil {
		reason = h.Err.Error()
	}
	if h.Message == nil {
		note.Error = "not exported: " + reason
	} else {
		note.Error = "the last valid value is exported, because the newest one is refused: " + reason
	}
	return note
}

// comments returns notes as comments of YAML.
func comments(of wire.Export) string {
	var b strings.Builder
	for _, n := range of.Notes {
		fmt.Fprintf(&b, "# %s: %s\n", printable.Line(n.Key), printable.Line(strings.ReplaceAll(n.Error, "\n", "; ")))
	}
	for _, key := range of.Hidden {
		fmt.Fprintf(&b, "# %s: its secrets are hidden\n", printable.Line(key))
	}
	return b.String()
}

package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/jsonschema"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/export"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// yamlMedia is the media type of YAML (RFC 9512).
const yamlMedia = "application/yaml"

// Contents tells what each source declares. *orchestrator.Orchestrator implements it.
type Contents = export.Contents

// configuration answers declared values as one YAML document, which can be declared again.
func (h *handler) configuration(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	h, err := h.revealing(r, q)
	if err != nil {
		return err
	}
	format, err := q.Choice("format", "yaml", "json")
	if err != nil {
		return reply.BadRequest(err)
	}
	wanted := export.Selection{Models: q.Values["model"]}
	if wanted.Source, err = q.One("source"); err != nil {
		return reply.BadRequest(err)
	}
	for _, key := range q.Values["key"] {
		wanted.Keys = append(wanted.Keys, h.short(key))
	}
	// The form of an older agent's answer is the one without parameters of this agent.
	older := r.URL.RawQuery == ""
	out, err := export.Exporter{Scheduler: h.sched, Contents: h.Contents, Secrets: h.Secrets, CamelCase: older}.Export(r.Context(), wanted)
	switch {
	case errors.Is(err, models.ErrNoModel):
		return reply.BadRequest(fmt.Errorf("model: %w", err))
	case errors.Is(err, orchestrator.ErrNoSource), errors.Is(err, export.ErrNoContents), errors.Is(err, export.ErrNotDeclared):
		return reply.NotFound(err)
	case err != nil:
		return err
	}
	if format == "json" {
		return reply.JSON(w, out)
	}
	reply.Header(w, yamlMedia, http.StatusOK)
	_, _ = io.WriteString(w, out.Text) // an error means that the client has disconnected
	return nil
}

// jsonSchema answers the JSON schema of a configuration document.
func (h *handler) jsonSchema(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	names, err := q.Choice("fieldnames", "both", "onlyproto", "onlyjson")
	if err != nil {
		return reply.BadRequest(err)
	}
	choice := map[string]jsonschema.Names{"both": jsonschema.BothNames, "onlyproto": jsonschema.ProtoNames, "onlyjson": jsonschema.JSONNames}
	return reply.JSON(w, jsonschema.Of(h.sched.Models(), choice[names]))
}

// validateConfiguration answers {} for a valid document, and otherwise its errors with
// status 400. Values that are not in the document do not matter.
func (h *handler) validateConfiguration(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	text, err := h.textOf(w, r)
	if err != nil {
		return err
	}
	items, _, leave, err := h.itemsToTry(r.Context(), text)
	if err != nil {
		return err
	}
	defer leave()
	var found []wire.ConfigError
	paths := pathsOf(items)
	var changes []scheduler.Change
	keys := map[string]int{}
	for i, it := range items {
		c, err := h.checkedChange(it)
		if first, twice := keys[c.Key]; err == nil && twice {
			err = fmt.Errorf("the key %s is already in line %d: expected it once", c.Key, items[first].Line)
		}
		if err != nil {
			found = append(found, h.configErrors(paths[i], it, err)...)
			continue
		}
		keys[c.Key] = i
		changes = append(changes, c)
	}
	// Each value is valid by itself here; conflicts are between them.
	for _, c := range h.conflicts(items, changes) {
		e := wire.ConfigError{Error: c.Error}
		if i, ok := keys[c.Key]; ok {
			e.Path, e.Part = withField(paths[i], c.Fields), h.shownItem(items[i])
		}
		found = append(found, e)
	}
	if len(found) == 0 {
		return reply.JSON(w, wire.Nothing{})
	}
	if more := len(found) - maxInvalid; more > 0 {
		found = append(found[:maxInvalid], wire.ConfigError{Error: fmt.Sprintf("and %d more", more)})
	}
	reply.Header(w, reply.JSONType, http.StatusBadRequest)
	reply.Encode(w, "", found)
	return nil
}

// pathsOf returns where each item is in the document: "vppConfig.interfaces[2]", or its
// key if the document is a list of keys.
func pathsOf(items []structured.Item) []string {
	out := make([]string, len(items))
	// Items are in the order of the document, so counting gives the index within a list.
	counts := map[string]int{}
	for i, it := range items {
		if it.Model == nil {
			out[i] = it.Key
			continue
		}
		group, field := it.Model.ConfigField()
		at := group + "." + field
		out[i] = at
		if !it.Model.Singleton() {
			out[i] = fmt.Sprintf("%s[%d]", at, counts[at])
		}
		counts[at]++
	}
	return out
}

// configErrors returns the errors of one item, one for each field.
func (h *handler) configErrors(path string, it structured.Item, err error) (out []wire.ConfigError) {
	one := wire.ConfigError{Path: path, Error: messageOnly(err), Part: h.shownItem(it)}
	if of, ok := errors.AsType[scheduler.KeyError](err); ok && of.Base != "" {
		one.DerivedPart = of.Key
	}
	fields := models.Fields(err)
	for _, f := range fields {
		e := one
		e.Path = withField(path, []string{f})
		out = append(out, e)
	}
	if len(fields) == 0 {
		out = append(out, one)
	}
	return out
}

// withField adds the first field to a path.
func withField(path string, fields []string) string {
	if len(fields) == 0 || fields[0] == "" {
		return path
	}
	return strings.TrimPrefix(path+"."+fields[0], ".")
}

// shownItem returns the JSON of an item, without secrets. A value that does not parse may
// have one anywhere, so nothing of it is shown.
func (h *handler) shownItem(it structured.Item) string {
	m := it.Model
	if m == nil {
		m, _, _ = h.sched.Models().ByKey(it.Key)
	}
	if m == nil || it.Value == nil {
		return ""
	}
	v, err := m.Unmarshal(it.Value)
	if err != nil {
		return ""
	}
	text, err := models.JSON(models.Redacted(v))
	if err != nil {
		return ""
	}
	return string(text)
}

package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/internal/body"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
)

// A Previewer tells what would follow if a source had another content.
// *orchestrator.Orchestrator implements it.
type Previewer interface {
	Preview(ctx context.Context, q orchestrator.PreviewQuery) (orchestrator.Preview, error)
}

// A FileStore is a source that consists of files. *filedb.DB implements it.
type FileStore interface {
	// WithFile returns the whole content of the source if the file at path had the text data. The
	// problems are mistakes, for which parts of the text have no effect; the warnings name other such parts.
	WithFile(ctx context.Context, prefix, path string, data []byte) (events []kvdbsync.Event, problems, warnings []error, err error)
}

// configFolder is the folder of declared values below the prefix of the agent.
const configFolder = "config/"

// errNoPreviewer is the answer of an agent that cannot plan the content of a source.
var errNoPreviewer = errors.New("this agent has no sources")

// previewed returns the meaning of a text as the content of a source, "NAME", or of one of its files,
// "NAME:PATH". With keep, the values join those of the source. With fresh, it may be a layer that does
// not exist yet. Values without effect are invalid.
func (h *handler) previewed(ctx context.Context, as string, keep, fresh bool, text []byte) (out intention, leave func(), err error) {
	if h.Previewer == nil {
		return out, nil, reply.NotFound(errNoPreviewer)
	}
	name, path, hasPath := strings.Cut(as, ":")
	var content []kvdbsync.Event
	notation := map[string][]error{} // warnings, by key
	leave = func() {}
	switch {
	case hasPath:
		content, err = h.contentOfFile(ctx, name, path, text, &out)
	case len(bytes.TrimSpace(text)) > 0: // else the source becomes empty
		var items []structured.Item
		var ignored []error
		items, ignored, leave, err = h.itemsToTry(ctx, text)
		out.ignore(ignored)
		content, out.invalid = h.contentOf(items, keep)
		for _, it := range items {
			if it.Warnings != nil {
				notation[h.short(it.Key)] = it.Warnings
			}
		}
	}
	if err != nil {
		return out, nil, err
	}
	preview, err := h.Previewer.Preview(ctx, orchestrator.PreviewQuery{Source: name, Content: content, Keep: keep, New: fresh || name == DefaultLayer})
	if errors.Is(err, orchestrator.ErrNoSource) || errors.Is(err, orchestrator.ErrLayerName) {
		err = reply.BadRequest(fmt.Errorf("as: %w", err))
	}
	if err != nil {
		leave()
		return out, nil, err
	}
	out.add(preview, content, notation)
	return out, leave, nil
}

// add adds what would follow from the content of a source. notation has the warnings of its values,
// by key.
func (out *intention) add(p orchestrator.Preview, content []kvdbsync.Event, notation map[string][]error) {
	lines := map[string]int{}
	for i := range content {
		lines[content[i].Key] = content[i].Origin.Line
	}
	// These come first: among too many warnings, callers still find that there are some of them.
	for _, k := range p.Kept {
		out.warnings = append(out.warnings, wire.Warning{
			Key: k.Key, Line: lines[k.Key], Text: "the value of " + k.By + " takes effect instead", KeptBy: k.By,
		})
	}
	for _, c := range p.Changes {
		// Otherwise a document that was read without secrets would look as if it changed them.
		if c.Err == nil && c.Value != nil {
			c.Err = models.CheckSecrets(c.Value.Message())
		}
		if c.Err != nil {
			out.invalid = append(out.invalid, wire.Invalid{Key: c.Key, Line: lineOf(structured.Item{Line: lines[c.Key]}, c.Err), Error: messageOnly(c.Err), Fields: models.Fields(c.Err)})
			continue
		}
		out.changes = append(out.changes, c)
		out.warnings = append(out.warnings, warningsOf(c, structured.Item{Line: lines[c.Key], Warnings: notation[c.Key]})...)
	}
	slices.SortStableFunc(out.invalid, func(a, b wire.Invalid) int { return cmp.Compare(a.Line, b.Line) })
	out.invalid = firstInvalid(out.invalid)
}

// contentOf returns the items of a body as the content of a source. Items that belong to no key, or
// repeat one, are invalid. removals says that a null value is an event, too.
func (h *handler) contentOf(items []structured.Item, removals bool) (content []kvdbsync.Event, invalid []wire.Invalid) {
	lines := map[string]int{}
	for _, it := range items {
		key := h.short(it.Key)
		var err error
		switch first, repeated := lines[key]; {
		case key == "":
			err = it.Err
		case strings.HasPrefix(key, "/"):
			err = fmt.Errorf("the key does not belong to this agent: expected one that begins with %s or /vnf-agent/%s/%s", configFolder, h.Label, configFolder)
		case repeated:
			err = fmt.Errorf("the key is already in line %d: expected it once", first)
		}
		if err != nil {
			invalid = append(invalid, wire.Invalid{Key: key, Line: lineOf(it, err), Error: messageOnly(err)})
			continue
		}
		lines[key] = it.Line
		if it.Value != nil || it.Err != nil || removals {
			content = append(content, kvdbsync.Event{Key: key, Value: it.Value, Err: it.Err, Origin: kvdbsync.Origin{Line: it.Line}})
		}
	}
	return content, invalid
}

// contentOfFile returns the content of a source of files if one of them had another text. Lines
// are those of this file. What is to be said about the text is added to out.
func (h *handler) contentOfFile(ctx context.Context, name, path string, text []byte, out *intention) (content []kvdbsync.Event, err error) {
	files := h.Files[name]
	if files == nil {
		return nil, reply.BadRequest(fmt.Errorf("as: %q consists of no files: expected a source without a path", name))
	}
	if err := h.affordable(body.Of(text)); err != nil {
		return nil, err
	}
	root := ""
	if h.Label != "" {
		root = "/vnf-agent/" + h.Label + "/"
	}
	content, problems, warnings, err := files.WithFile(ctx, root+configFolder, path, text)
	if err != nil {
		return nil, reply.BadRequest(fmt.Errorf("as: %w", err))
	}
	for i := range content {
		content[i].Key = strings.TrimPrefix(content[i].Key, root)
	}
	for _, p := range problems {
		out.invalid = append(out.invalid, wire.Invalid{Error: p.Error()})
	}
	for _, w := range warnings {
		out.warnings = append(out.warnings, wire.Warning{Text: w.Error()})
	}
	return content, nil
}

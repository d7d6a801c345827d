package filedb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/keyplane/keyplane/internal/packed"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A content is the parsed content of a file. It never changes.
type content struct {
	entries  []entry
	problems []error // faults that belong to no key
	warnings []error // about leniently read values and parts without effect; each begins with path and line
	// nameless means that some problems are about entries with unknown keys, and hidden has the prefixes of
	// such keys where they are known: a misspelt group hides values of that group only.
	nameless bool
	hidden   []string
	blank    bool // it declares nothing: empty, only comments, or only parts for others
	ending   document.Ending
	// unfinished is a sign that the end is missing; nil: there is none.
	unfinished error
	own        *content // the file's present content, if entries come from an older one; nil: this content
}

// without returns the keys that c has and other has not. Both may be nil.
func (c *content) without(other *content) map[string]bool {
	if c == nil || c == other {
		return nil
	}
	keys := make(map[string]bool, len(c.entries))
	for i := range c.entries {
		keys[c.entries[i].key] = true
	}
	other.strike(keys)
	return keys
}

// strike deletes the keys of c, which may be nil, from keys.
func (c *content) strike(keys map[string]bool) {
	if c == nil {
		return
	}
	for i := range c.entries {
		delete(keys, c.entries[i].key)
	}
}

// An entry is the value of a key in a file.
type entry struct {
	key    string      // whole
	value  packed.Text // JSON; nil if err is set
	origin kvdbsync.Origin
	err    error // reason for which it is no value
}

// path returns the file of the entry.
func (e *entry) path() string { return e.origin.File.Value() }

// event returns the entry as the source gets it.
func (e *entry) event() kvdbsync.Event {
	return kvdbsync.Event{Key: e.key, Value: e.value.Bytes(), Origin: e.origin, Err: e.err}
}

// parseSlowly reads a file that quick cannot read. It fails only if no part can be read; a
// fault of one entry does not affect the others. Every error begins with path and line.
func parseSlowly(ctx context.Context, all *models.Registry, path string, data []byte, root string, format document.Format) (*content, error) {
	text, err := structured.For(all).Read(ctx, data, format)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	p := parser{path: path, file: unique.Make(path), root: root, content: &content{blank: text.Empty(), ending: document.EndingOf(data, format)}}
	if len(bytes.TrimSpace(data)) == 0 {
		p.problems = []error{fmt.Errorf("%s: is empty, so its former values no longer count: if that is intended, remove the file", path)}
	}
	for _, doc := range text.Documents {
		p.document(doc)
	}
	p.finish()
	if format == document.YAML {
		p.end(text)
	}
	return p.content, nil
}

// mostFaults is the largest number of reported faults without a key per file.
const mostFaults = 20

// A parser collects the entries of one file. Mistakes of one entry do not affect others.
type parser struct {
	path, root string
	more       int                   // faults that are not reported
	file       unique.Handle[string] // path
	*content
}

// document adds the entries of one document.
func (p *parser) document(doc structured.Document) {
	for _, it := range doc.Items {
		// A null value asks for removal, which only a request can do.
		if it.Err == nil && it.Value == nil {
			it.Err = &document.Error{Line: it.Line, Column: it.Column, Msg: "entry without a value: expected {key, value}; to remove the key, remove the entry"}
		}
		p.add(p.wholeKey(it.Key), it)
	}
	for _, err := range doc.Faults {
		p.lost(err, structured.MayHide(err))
	}
	for _, err := range doc.Ignored {
		p.warnings = append(p.warnings, fmt.Errorf("%s:%w; it has no effect", p.path, err))
	}
}

// wholeKey completes a short key, such as "config/linux/...".
func (p *parser) wholeKey(key string) string {
	prefix, _, _ := strings.Cut(strings.TrimPrefix(p.root, "/"), "/")
	if key == "" || strings.HasPrefix(key, "/"+prefix+"/") {
		return key
	}
	return p.root + strings.TrimPrefix(key, "/")
}

// add adds one item. An error without a key is one of the file: nobody can say which
// values are missing because of it.
func (p *parser) add(key string, it structured.Item) {
	for _, w := range it.Warnings {
		p.warnings = append(p.warnings, fmt.Errorf("%s:%w", p.path, w))
	}
	value, err := it.Value, it.Err
	if err != nil {
		if key == "" {
			var prefixes []string
			if it.Model != nil {
				prefixes = []string{it.Model.Prefix()}
			}
			p.lost(err, prefixes)
			return
		}
		value, err = nil, fmt.Errorf("%s:%w", p.path, err)
	}
	p.take(entry{key, packed.Of(value), kvdbsync.Origin{File: p.file, Line: it.Line}, err})
}

// take adds an entry, unless no item can have its key: errors about it name the key.
func (p *parser) take(e entry) {
	if err := kvdbsync.CheckKey(e.key); err != nil {
		p.fault(fmt.Errorf("%d: %w", e.origin.Line, err))
		return
	}
	p.entries = append(p.entries, e)
}

// finish records the number of faults that are not reported.
func (p *parser) finish() {
	if p.more > 0 {
		p.problems = append(p.problems, fmt.Errorf("%s: and %d problems more", p.path, p.more))
	}
}

// lost records a fault that may hide entries: those with one of these prefixes, or any if there is none.
func (p *parser) lost(err error, prefixes []string) {
	p.nameless = p.nameless || len(prefixes) == 0
	for _, prefix := range prefixes {
		p.hidden = append(p.hidden, p.root+prefix)
	}
	p.fault(err)
}

// mayHide reports whether the content may have an entry with a key that it does not name.
func (c *content) mayHide(key string) bool {
	return c.nameless || slices.ContainsFunc(c.hidden, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// fault records a fault.
func (p *parser) fault(err error) {
	if len(p.problems) < mostFaults {
		p.problems = append(p.problems, fmt.Errorf("%s:%w", p.path, err))
		return
	}
	p.more++
}

// orOf returns c with additional entries of old: those that c may still have but cannot
// name.
func (c *content) orOf(old *content) *content {
	if !c.nameless && len(c.hidden) == 0 || old == nil {
		return c
	}
	has := map[string]bool{}
	for _, e := range c.entries {
		has[e.key] = true
	}
	out := content{entries: slices.Clone(c.entries), problems: c.problems, own: c}
	for _, e := range old.entries {
		if !has[e.key] && c.mayHide(e.key) {
			out.entries = append(out.entries, e)
		}
	}
	return &out
}

// said returns the file's present content.
func (c *content) said() *content {
	if c.own != nil {
		return c.own
	}
	return c
}

package filedb

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/packed"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// end looks for signs that the end of a YAML file is missing, because its writer died or
// the disk was full. A key or a dash without a value is a sure sign. Then the last good
// content stays effective; if there is none, all entries but the last one take effect. A
// last entry that is no value is a weak sign: the other entries take effect, and nothing
// is removed.
func (p *parser) end(text structured.Text) {
	last := p.lastEntry(text.Documents)
	if err := text.Cut; err != nil {
		p.nameless, p.unfinished = true, fmt.Errorf("%s:%w", p.path, err)
		p.problems = append(p.problems, p.unfinished)
		if last != nil && last.err == nil {
			last.value, last.err = packed.Text{}, fmt.Errorf("%s:%w", p.path, err)
		}
		return
	}
	if last != nil && last.err != nil && p.ending != document.EndsComplete {
		p.nameless = true
		p.problems = append(p.problems, fmt.Errorf("%s: the last entry of the file is faulty, as if the file were cut off there: nothing that it said before is removed until that is put right", last.origin))
	}
}

// lastEntry returns the entry with which the text ends; nil: it ends with something else.
func (p *parser) lastEntry(docs []structured.Document) *entry {
	if len(docs) == 0 || len(p.entries) == 0 {
		return nil
	}
	last := &p.entries[len(p.entries)-1]
	begins := func(n *yaml.Node) bool { return n.Kind == yaml.MappingNode && n.Line == last.origin.Line }
	if !slices.ContainsFunc(document.Tail(docs[len(docs)-1].Root), begins) {
		return nil
	}
	return last
}

// cutFrom returns an error if the content looks like an older one that has lost its end.
// In a file that nobody is writing, a sign of this is a last line without a line feed. In
// a file that another process may be writing, it is a missing last entry.
func (c *content) cutFrom(old *content, unsure bool) error {
	if old == nil || len(old.entries) == 0 || old.said() == c || c.ending == document.EndsComplete {
		return nil
	}
	if c.unfinished != nil {
		return c.unfinished
	}
	last := &old.entries[len(old.entries)-1]
	at := slices.IndexFunc(c.entries, func(e entry) bool { return e.key == last.key })
	inLine := c.ending == document.EndsInLine && old.said().ending != document.EndsInLine
	const missing = "%s: %s is missing, which was the last entry"
	switch {
	case at < 0 && unsure:
		return fmt.Errorf(missing+"; this file system does not tell whether somebody is still writing the file: if it is complete, add a last line \"...\"", last.path(), last.key)
	case at < 0 && inLine:
		return fmt.Errorf(missing+", and the last line has no line feed, as if the file were cut off: if it is complete, add one", last.path(), last.key)
	case at >= 0 && at == len(c.entries)-1 && inLine && !c.entries[at].value.Equal(last.value):
		return fmt.Errorf("%s: the last line has no line feed, as if the file were cut off in %s: if it is complete, add one", last.path(), last.key)
	}
	return nil
}

package filedb

import (
	"bytes"
	"unique"

	"github.com/keyplane/keyplane/internal/packed"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models/structured"
)

// quick reads JSON in the key/value form as programs write it. It is many times as fast as
// parseSlowly, which matters for large files, and its result is the same. If ok is false,
// parseSlowly must read the file.
func quick(path string, data []byte, root string) (c *content, ok bool) {
	p := parser{path: path, file: unique.Make(path), root: root, content: &content{}}
	p.entries = make([]entry, 0, bytes.Count(data, []byte(`"key"`)))
	ok = structured.Quick(data, func(it structured.Item) {
		p.take(entry{key: p.wholeKey(it.Key), value: packed.Of(it.Value), origin: kvdbsync.Origin{File: p.file, Line: it.Line}})
	})
	if !ok {
		return nil, false
	}
	p.finish()
	return p.content, true
}

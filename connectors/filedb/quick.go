package filedb

import (
	"bytes"
	"errors"
	"io"
	"unique"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/keyplane/keyplane/kvdbsync"
)

// quick reads JSON in the key/value form as programs write it: only the list of data, key
// before value, no escapes, no faults. It is many times as fast as parse, which matters
// for large files, and its result is the same. If ok is false, parse must read the file.
//
// It makes no tree of nodes, so it cannot describe mistakes: it stops at the first
// deviation. jsontext refuses invalid UTF-8 and repeated fields, as parse does.
func quick(path string, data []byte, root string) (c *content, ok bool) {
	if bytes.IndexByte(data, '\\') >= 0 {
		return nil, false
	}
	q := quickReader{
		parser: parser{path: path, file: unique.Make(path), root: root, content: &content{}},
		text:   data, line: 1,
		dec: jsontext.NewDecoder(bytes.NewBuffer(data)),
	}
	if !q.opens('{') || !q.reads(`"data"`) || !q.opens('[') || q.dec.PeekKind() == ']' {
		return nil, false
	}
	q.entries = make([]entry, 0, bytes.Count(data, []byte(`"key"`)))
	for q.dec.PeekKind() != ']' {
		if !q.entry() {
			return nil, false
		}
	}
	return q.content, q.opens(']') && q.opens('}') && q.ended()
}

// A quickReader reads JSON without escapes. Nothing that it returns aliases text.
type quickReader struct {
	parser
	text    []byte
	dec     *jsontext.Decoder
	line    int // of the offset counted, from 1
	counted int // up to here, lines have been counted
}

// entry reads one pair.
func (q *quickReader) entry() bool {
	if !q.opens('{') {
		return false
	}
	line := q.lineHere()
	if !q.reads(`"key"`) {
		return false
	}
	key, err := q.dec.ReadValue()
	if err != nil || key.Kind() != '"' || len(key) == len(`""`) {
		return false
	}
	whole := q.wholeKey(string(key[1 : len(key)-1]))
	if !q.reads(`"value"`) {
		return false
	}
	value, ok := q.value()
	if !ok || !q.opens('}') {
		return false
	}
	q.entries = append(q.entries, entry{key: whole, value: value, origin: kvdbsync.Origin{File: q.file, Line: line}})
	return true
}

// opens reads a token, and reports whether it is this bracket, opening or closing.
func (q *quickReader) opens(bracket jsontext.Kind) bool {
	token, err := q.dec.ReadToken()
	return err == nil && token.Kind() == bracket
}

// reads reads a value, and reports whether it has this text.
func (q *quickReader) reads(want string) bool {
	value, err := q.dec.ReadValue()
	return err == nil && string(value) == want
}

// ended reports whether nothing follows.
func (q *quickReader) ended() bool {
	_, err := q.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// lineHere returns the line of the last token. Lines are counted once, from token to token.
func (q *quickReader) lineHere() int {
	at := int(q.dec.InputOffset())
	q.line += bytes.Count(q.text[q.counted:at], []byte("\n"))
	q.counted = at
	return q.line
}

// fewLevels is the number of brackets in a value up to which parse never finds it nested
// too deep.
const fewLevels = 100

// value reads a value, and returns a copy without white space that has no spare capacity:
// the entries of a file live long.
func (q *quickReader) value() (value []byte, ok bool) {
	raw, err := q.dec.ReadValue()
	if err != nil || raw.Kind() == 'n' || bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) > fewLevels {
		return nil, false
	}
	out := raw.Clone()
	if !bytes.ContainsAny(raw, " \n\t\r") {
		return out, true
	}
	err = out.Compact()
	return bytes.Clone(out), err == nil
}

package filedb

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
	"unique"

	"github.com/keyplane/keyplane/kvdbsync"
)

// quick reads JSON in the key/value form as programs write it: only the list of data, key
// before value, no escapes, no faults. It is many times as fast as parse, which matters
// for large files, and its result is the same. If ok is false, parse must read the file.
func quick(path string, data []byte, root string) (*content, bool) {
	if bytes.IndexByte(data, '\\') >= 0 || !utf8.Valid(data) || !json.Valid(data) {
		return nil, false
	}
	q := quickReader{
		parser: parser{path: path, file: unique.Make(path), root: root, content: &content{}},
		text:   data, line: 1,
	}
	if !q.reads("{", `"data"`, ":", "[") {
		return nil, false
	}
	q.entries = make([]entry, 0, bytes.Count(data, []byte(`"key"`)))
	for more := true; more; more = q.reads(",") {
		if !q.entry() {
			return nil, false
		}
	}
	return q.content, q.reads("]", "}")
}

// A quickReader reads valid JSON without escapes.
type quickReader struct {
	parser
	text    []byte
	at      int
	line    int // at counted
	counted int
	seen    fields
}

// entry reads one pair.
func (q *quickReader) entry() bool {
	if !q.reads("{") {
		return false
	}
	line := q.lineHere()
	if !q.reads(`"key"`, ":", `"`) {
		return false
	}
	key := q.text[q.at : q.at+bytes.IndexByte(q.text[q.at:], '"')]
	q.at += len(key) + 1
	if len(key) == 0 || !q.reads(",", `"value"`, ":") {
		return false
	}
	value, ok := q.value()
	if !ok || !q.reads("}") {
		return false
	}
	q.entries = append(q.entries, entry{key: q.wholeKey(string(key)), value: value, origin: kvdbsync.Origin{File: q.file, Line: line}})
	return true
}

// reads reports whether the given tokens come next, and skips them.
func (q *quickReader) reads(tokens ...string) bool {
	for _, want := range tokens {
		q.skip()
		if !bytes.HasPrefix(q.text[q.at:], []byte(want)) {
			return false
		}
		q.at += len(want)
	}
	return true
}

// skip skips white space.
func (q *quickReader) skip() {
	for q.at < len(q.text) && isSpace(q.text[q.at]) {
		q.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (q *quickReader) lineHere() int {
	q.line += bytes.Count(q.text[q.counted:q.at], []byte("\n"))
	q.counted = q.at
	return q.line
}

// value reads a valid value, and removes its white space.
func (q *quickReader) value() (value []byte, ok bool) {
	q.skip()
	n, spaced, ok := q.seen.value(q.text[q.at:])
	raw := q.text[q.at : q.at+n]
	q.at += n
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil, false
	}
	if !spaced {
		return bytes.Clone(raw), true
	}
	var out bytes.Buffer
	err := json.Compact(&out, raw)
	return bytes.Clone(out.Bytes()), err == nil
}

// fields finds objects with a repeated field. It uses the slices again for each value.
type fields struct {
	names  [][]byte // of the open objects
	levels []int    // start of the names of each open object; -1: it is an array
}

// value returns the length of the value at the start of text, and whether it contains
// white space. ok is false if an object has a repeated field or too many fields.
func (f *fields) value(text []byte) (n int, spaced, ok bool) {
	f.names, f.levels = f.names[:0], f.levels[:0]
	isName := false
	for n < len(text) {
		switch text[n] {
		case '{':
			f.levels, isName = append(f.levels, len(f.names)), true
		case '[':
			f.levels, isName = append(f.levels, -1), false
		case '}', ']':
			f.leave()
		case ',':
			isName = f.levels[len(f.levels)-1] >= 0
		case ':':
			isName = false
		case ' ', '\n', '\t', '\r':
			spaced = true
		case '"':
			length := 1 + bytes.IndexByte(text[n+1:], '"')
			if isName && !f.add(text[n+1:n+length]) {
				return 0, spaced, false
			}
			n += length
		default:
			n += plain(text[n:]) - 1
		}
		n++
		if len(f.levels) == 0 {
			return n, spaced, true
		}
	}
	return 0, spaced, false
}

// plain returns the length of the number or literal at the start of text.
func plain(text []byte) int {
	for i, c := range text {
		if c == ',' || c == '}' || c == ']' || isSpace(c) {
			return i
		}
	}
	return len(text)
}

func (f *fields) leave() {
	last := len(f.levels) - 1
	if begin := f.levels[last]; begin >= 0 {
		f.names = f.names[:begin]
	}
	f.levels = f.levels[:last]
}

func (f *fields) add(name []byte) bool {
	const many = 100
	others := f.names[f.levels[len(f.levels)-1]:]
	f.names = append(f.names, name)
	return len(others) < many && !slices.ContainsFunc(others, func(other []byte) bool { return bytes.Equal(other, name) })
}

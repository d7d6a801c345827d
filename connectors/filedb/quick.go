package filedb

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// quick reads JSON in the key/value form as programs write it: a list of data alone, key
// before value, nothing wrong with it. It is several times as fast as parse, which
// large files feel, and says what parse does; false: it is for parse to say something.
func quick(path string, data []byte, root string) (*content, bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	q := quickReader{
		parser: parser{path: path, root: root, content: &content{}},
		data:   data, in: json.NewDecoder(bytes.NewReader(data)), line: 1,
	}
	if !q.reads(json.Delim('{'), "data", json.Delim('[')) {
		return nil, false
	}
	for q.in.More() {
		if !q.entry() {
			return nil, false
		}
	}
	if !q.reads(json.Delim(']'), json.Delim('}')) {
		return nil, false
	}
	if _, err := q.in.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	q.entries = slices.Clip(slices.Clone(q.entries))
	return q.content, len(q.entries) > 0
}

type quickReader struct {
	parser
	data []byte
	in   *json.Decoder
	line int // at
	at   int // offset up to which lines are counted
	seen fields
}

// entry reads one pair.
func (q *quickReader) entry() bool {
	if !q.reads(json.Delim('{')) {
		return false
	}
	to := int(q.in.InputOffset())
	q.line += bytes.Count(q.data[q.at:to], []byte("\n"))
	q.at = to
	if !q.reads("key") {
		return false
	}
	token, err := q.in.Token()
	key, ok := token.(string)
	if err != nil || !ok || key == "" || !q.reads("value") {
		return false
	}
	var raw json.RawMessage
	if err := q.in.Decode(&raw); err != nil || !q.reads(json.Delim('}')) {
		return false
	}
	value, ok := compact(raw)
	ok = ok && q.seen.distinct(raw)
	q.entries = append(q.entries, entry{key: q.wholeKey(key), value: value, origin: q.path + ":" + strconv.Itoa(q.line)})
	return ok
}

// reads tells whether what comes next are these.
func (q *quickReader) reads(tokens ...json.Token) bool {
	for _, want := range tokens {
		if got, err := q.in.Token(); err != nil || got != want {
			return false
		}
	}
	return true
}

// compact takes white space out of a value that is one. What has escapes is for
// parse to write out.
func compact(raw []byte) (value []byte, ok bool) {
	if bytes.Equal(raw, []byte("null")) || bytes.ContainsRune(raw, '\\') {
		return nil, false
	}
	if !bytes.ContainsAny(raw, " \t\r\n") {
		return raw, true
	}
	var out bytes.Buffer
	err := json.Compact(&out, raw)
	return bytes.Clone(out.Bytes()), err == nil
}

// fields finds objects that have a field twice. The slices are used again for each value.
type fields struct {
	names  [][]byte // of the objects that are open
	levels []int    // where the names of each begin; -1: it is an array
}

// distinct looks through valid JSON without escapes. It says no, too, to objects that are large.
func (f *fields) distinct(raw []byte) bool {
	f.names, f.levels = f.names[:0], f.levels[:0]
	isName := false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
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
		case '"':
			end := i + 1 + bytes.IndexByte(raw[i+1:], '"')
			if isName && !f.add(raw[i+1:end]) {
				return false
			}
			i = end
		}
	}
	return true
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

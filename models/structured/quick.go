package structured

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Quick reads JSON in the key/value form as programs write it: only the list of data, key
// before value, no escapes, no faults. It is many times as fast as a [Form], its result is
// the same, and it needs little memory besides the result. It returns false for all other
// texts. These need a Form.
//
// It makes no tree of nodes, so it cannot describe mistakes: it stops at the first
// deviation. jsontext refuses invalid UTF-8 and repeated fields, as a Form does. each gets
// the items before that, with a Key, a Value and a Line. A value may be larger than
// models.MaxSize: whoever decodes it refuses it.
func Quick(data []byte, each func(Item)) (ok bool) {
	if bytes.IndexByte(data, '\\') >= 0 {
		return false
	}
	q := quickReader{text: data, line: 1, dec: jsontext.NewDecoder(bytes.NewBuffer(data))}
	if !q.opens('{') || !q.reads(`"data"`) || !q.opens('[') || q.dec.PeekKind() == ']' {
		return false
	}
	for q.dec.PeekKind() != ']' {
		it, ok := q.item()
		if !ok {
			return false
		}
		each(it)
	}
	return q.opens(']') && q.opens('}') && q.ended()
}

// A quickReader reads JSON without escapes. Nothing that it returns aliases text.
type quickReader struct {
	text    []byte
	dec     *jsontext.Decoder
	line    int // of the offset counted, from 1
	counted int // up to here, lines have been counted
}

// item reads one pair.
func (q *quickReader) item() (it Item, ok bool) {
	if !q.opens('{') {
		return it, false
	}
	it.Line = q.lineHere()
	if !q.reads(`"key"`) {
		return it, false
	}
	key, err := q.dec.ReadValue()
	if err != nil || key.Kind() != '"' || len(key) == len(`""`) {
		return it, false
	}
	it.Key = string(key[1 : len(key)-1])
	if !q.reads(`"value"`) {
		return it, false
	}
	it.Value, ok = q.value()
	return it, ok && q.opens('}')
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

// fewLevels is the number of brackets in a value up to which a Form never finds it nested
// too deep.
const fewLevels = 100

// value reads a value, and returns a copy without white space that has no spare capacity:
// the values of a file live long. A null is for a Form.
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

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
	return quickly(data, func(key, value []byte, line int) {
		each(Item{Key: string(key), Value: compact(value), Line: line})
	})
}

// IsQuick reports whether Quick reads data. It takes no memory.
func IsQuick(data []byte) bool { return quickly(data, func(_, _ []byte, _ int) {}) }

// quickly is Quick with keys and values that are parts of data.
func quickly(data []byte, each func(key, value []byte, line int)) (ok bool) {
	if bytes.IndexByte(data, '\\') >= 0 {
		return false
	}
	q := quickReader{text: data, line: 1, dec: jsontext.NewDecoder(bytes.NewBuffer(data))}
	if !q.opens('{') || !q.reads(`"data"`) || !q.opens('[') || q.dec.PeekKind() == ']' {
		return false
	}
	for q.dec.PeekKind() != ']' {
		if !q.item(each) {
			return false
		}
	}
	return q.opens(']') && q.opens('}') && q.ended()
}

// A quickReader reads JSON without escapes.
type quickReader struct {
	text    []byte
	dec     *jsontext.Decoder
	line    int // of the offset counted, from 1
	counted int // up to here, lines have been counted
}

// item reads one pair.
func (q *quickReader) item(each func(key, value []byte, line int)) (ok bool) {
	if !q.opens('{') {
		return false
	}
	line := q.lineHere()
	if !q.reads(`"key"`) {
		return false
	}
	key := q.value()
	if key.Kind() != '"' || len(key) == len(`""`) || !q.reads(`"value"`) {
		return false
	}
	value := q.value()
	// A null is for a Form.
	if value == nil || value.Kind() == 'n' || bytes.Count(value, []byte("["))+bytes.Count(value, []byte("{")) > fewLevels || !q.opens('}') {
		return false
	}
	each(key[1:len(key)-1], value, line)
	return true
}

// opens reads a token, and reports whether it is this bracket, opening or closing.
func (q *quickReader) opens(bracket jsontext.Kind) bool {
	token, err := q.dec.ReadToken()
	return err == nil && token.Kind() == bracket
}

// reads reads a value, and reports whether it has this text.
func (q *quickReader) reads(want string) bool {
	return string(q.value()) == want
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

// value reads a value. It is a part of text; nil after a fault. The decoder's own bytes hold only until
// the next one.
func (q *quickReader) value() jsontext.Value {
	value, err := q.dec.ReadValue()
	if err != nil {
		return nil
	}
	end := int(q.dec.InputOffset())
	return q.text[end-len(value) : end]
}

// compact returns a copy of a value without white space that has no spare capacity: the values of a
// file live long.
func compact(value jsontext.Value) []byte {
	out := value.Clone()
	if !bytes.ContainsAny(value, " \n\t\r") {
		return out
	}
	_ = out.Compact() // fails only for what the decoder refuses
	return bytes.Clone(out)
}

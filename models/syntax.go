package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// notObject returns an error if data is not a JSON object, or nil. The error gives an
// example with a field of md.
func notObject(data []byte, md protoreflect.MessageDescriptor) error {
	const format = `%w: it is %s: expected one such as {"%s": ...}`
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return fmt.Errorf(format, ErrNotJSON, "empty", md.Fields().Get(0).Name())
	}
	if at := invalidUTF8(data); at >= 0 {
		return fmt.Errorf("%w: %s: byte 0x%02x is no UTF-8 text", ErrNotJSON, position(data, at), data[at])
	}
	if err := syntax(data); err != nil {
		return err
	}
	if text[0] != '{' {
		return fmt.Errorf(format, ErrNotJSON, kind(text), md.Fields().Get(0).Name())
	}
	return nil
}

// syntax returns the position of the first syntax error in data.
func syntax(data []byte) error {
	var bad *json.SyntaxError
	// A trailing line feed gives truncated JSON an error position at its end.
	if err := json.Unmarshal(append(bytes.Clone(data), '\n'), new(json.RawMessage)); !errors.As(err, &bad) {
		return nil
	}
	at := int(bad.Offset) - 1
	if at >= len(data) {
		return fmt.Errorf("%w: %s: it ends too early", ErrNotJSON, position(data, len(data)))
	}
	r, _ := utf8.DecodeRune(data[at:])
	return fmt.Errorf("%w: %s: %q cannot stand here", ErrNotJSON, position(data, at), r)
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8 text, or -1.
func invalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// position describes an offset in data as line and column.
func position(data []byte, at int) string {
	before := data[:at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}

// kind names the JSON type of text.
func kind(text []byte) string {
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

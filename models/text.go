package models

import (
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// Text returns m in the text format of Protocol Buffers, on one line or one line per
// field, with stable spacing.
func Text(m proto.Message, multiline bool) (string, error) {
	text, err := prototext.MarshalOptions{AllowPartial: true, Multiline: multiline}.Marshal(m)
	if err != nil {
		return "", err
	}
	return squeeze(string(text)), nil
}

// squeeze replaces two spaces by one, except in quotes and at the start of a line.
// prototext prints one or two at random, so that programs do not rely on its output.
func squeeze(s string) string {
	out := make([]byte, 0, len(s))
	quoted, indent := false, true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quoted && c == '\\' && i+1 < len(s):
			out = append(out, c, s[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && !indent && c == ' ' && out[len(out)-1] == ' ':
			continue
		}
		indent = c == '\n' || indent && c == ' '
		out = append(out, c)
	}
	return string(out)
}

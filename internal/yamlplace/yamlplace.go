// Package yamlplace finds the place of a mistake in a text that is no YAML. Version 3 of the library,
// which reads all texts, reports mistakes at the wrong line.
//
//	if err := yaml.NewDecoder(in).Decode(&n); err != nil {
//		place := yamlplace.Of(bytes.NewReader(data), data, err)
//	}
//
// The package keeps no state.
package yamlplace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml4 "go.yaml.in/yaml/v4"
)

// A Place is where a mistake is, and what it is.
type Place struct {
	Line, Column int // from 1; Column 0: unknown
	Msg          string
}

// Of returns the place of err, which version 3 of the library returned for data. in reads data;
// it may end early. Then the place is that of version 3.
func Of(in io.Reader, data []byte, err error) Place {
	place := parsedAgain(in, data)
	if place == nil {
		place = firstGuess(err)
	}
	switch {
	case strings.Contains(place.Msg, "cannot start any token"):
		place.Msg += " (indent with spaces, not with tabs; quote values that begin with @, ` or %)"
	case strings.Contains(place.Msg, "<document start>"):
		place.Msg += " (fields of one level begin in the same column)"
	}
	return *place
}

// parsedAgain parses an invalid text again, with the next version of the library, and returns its
// error. The errors of version 3 lack the place: their line is that of the outermost collection
// which the parser was reading, less one, or there is none. Version 4 has the same grammar and
// exact places. Its nodes are not used, because it reads some values in another way. parsedAgain
// returns nil if version 4 accepts the text.
func parsedAgain(in io.Reader, data []byte) *Place {
	d := yaml4.NewDecoder(in)
	for {
		err := d.Decode(&yaml4.Node{})
		switch e, ok := errors.AsType[*yaml4.LoadError](err); {
		case err == nil:
		case !ok || e.Mark.Line == 0 || e.Stage == yaml4.ConstructorStage:
			return nil
		default:
			return placed(data, e)
		}
	}
}

// placed converts an error of version 4. An unclosed quote or bracket is reported where it opens,
// because the text itself ends elsewhere.
func placed(data []byte, e *yaml4.LoadError) *Place {
	at, from := e.Mark, e.ContextMark
	end, last := LastLine(data)
	switch {
	case at.Line > last && (from.Line == 0 || from.Line > last):
		return &Place{Line: last, Column: utf8.RuneCount(end) + 1, Msg: e.Message}
	case from.Line == 0 || from.Line == at.Line:
		return &Place{Line: at.Line, Column: at.Column, Msg: e.Message}
	case at.Line > last || strings.HasSuffix(e.ContextMsg, "simple key"):
		return &Place{Line: from.Line, Column: from.Column, Msg: e.Message + " " + e.ContextMsg}
	default:
		return &Place{Line: at.Line, Column: at.Column, Msg: fmt.Sprintf("%s %s that begins in line %d", e.Message, e.ContextMsg, from.Line)}
	}
}

// LastLine returns the last line that is not blank, without surrounding space, and
// its number, from 1.
func LastLine(data []byte) (text []byte, number int) {
	data = bytes.TrimRight(data, " \t\r\n")
	begin := bytes.LastIndexByte(data, '\n') + 1
	return bytes.TrimSpace(data[begin:]), 1 + bytes.Count(data[:begin], []byte("\n"))
}

// lineOfError is the start of a message of version 3: "yaml: line 3: did not find ...".
var lineOfError = regexp.MustCompile(`^line (\d+): `)

// firstGuess extracts the line from an error of version 3, which may be above the mistake.
func firstGuess(err error) *Place {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1 // the library omits line 1
	if m := lineOfError.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	return &Place{Line: line, Msg: msg}
}

// Package document reads YAML and JSON into nodes that know their lines, and
// writes nodes as JSON.
//
//	nodes, err := document.Read(data, document.YAML)
//	value, err := document.JSON(nodes[0])
//
// What a text costs is bounded by its size. There is a largest number of nodes, and all aliases
// of a text share one [Budget] of bytes, which ends with a context. Read, Fields and JSON take no
// budget, for texts that one has made oneself. A [Gate] lets one large text at a time be read.
//
// Both formats become the same nodes, so that what is made of them is written
// once and every complaint can name a line and a column. Nothing is kept between
// calls; a node belongs to who read it. Tests: tables of what is accepted and what
// is said about the rest, and fuzzing: whatever is read as YAML is written as
// valid JSON, and JSON comes out as it went in.
package document

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A Format is how a document is written.
type Format int

const (
	YAML Format = iota
	JSONText
)

// FormatOf tells the format of a file from its name: .json, .yaml, .yml.
func FormatOf(path string) (f Format, ok bool) {
	switch filepath.Ext(path) {
	case ".json":
		return JSONText, true
	case ".yaml", ".yml":
		return YAML, true
	}
	return 0, false
}

// An Error is what is wrong at a place of a document.
type Error struct {
	Line   int // from 1
	Column int // from 1, in bytes; 0: not known
	Msg    string
	Err    error // the cause, where there is one; Msg tells it
}

// Error begins with the place, as compilers do: "12:5: ...". A file's name and a
// colon go before it.
func (e *Error) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
}

func (e *Error) Unwrap() error { return e.Err }

// At makes an Error about a node.
func At(n *yaml.Node, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Msg: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error of what went wrong with a node.
func Wrap(n *yaml.Node, err error) *Error {
	return &Error{Line: n.Line, Column: n.Column, Msg: err.Error(), Err: err}
}

// Read is ReadContext without an end of time.
func Read(data []byte, f Format) ([]*yaml.Node, error) {
	return ReadContext(context.Background(), data, f)
}

// ReadContext returns the roots of the documents in data, without those that hold
// nothing. A fault of syntax is an *Error, and so is a text of more nodes than fit into memory.
// When ctx ends, it returns the error of ctx.
func ReadContext(ctx context.Context, data []byte, f Format) ([]*yaml.Node, error) {
	if err := text(data); err != nil {
		return nil, err
	}
	if err := tooMany(data); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if f == JSONText {
		return readJSON(ctx, data)
	}
	return readYAML(ctx, data)
}

// text says where data is no text.
func text(data []byte) error {
	at, what := bytes.IndexByte(data, 0), "a NUL byte"
	if !utf8.Valid(data) {
		for at = 0; ; {
			r, n := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		what = fmt.Sprintf("byte 0x%02x, which is not UTF-8", data[at])
	}
	if at < 0 {
		return nil
	}
	line, column := newPlaces(data).of(at)
	return &Error{Line: line, Column: column, Msg: "not a text file: found " + what}
}

// Resolve follows aliases to what they stand for.
func Resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Kind names what a node is, for people.
func Kind(n *yaml.Node) string {
	switch n = Resolve(n); n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool", "!!int", "!!float":
		return n.Value
	}
	return Quote(n.Value)
}

// Quote shows a piece of a document: quoted, and cut where it is long.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

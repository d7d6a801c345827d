// Package document parses YAML and JSON into nodes with line numbers, and writes
// nodes as JSON.
//
//	nodes, err := document.Read(data, document.YAML)
//	value, err := document.JSON(nodes[0])
//
// The cost of a text is bounded by its size. The number of nodes is limited, and all
// aliases of a text share one [Budget] of bytes, which ends with a context. Read,
// Fields and JSON take no budget: use them for trusted texts.
//
//	limit            | value             | prevents
//	nesting          | mostDepth         | stack overflow
//	nodes of a text  | MostNodes         | 200 bytes of memory for each byte of text
//	bytes by aliases | mostAliased       | exponential growth ("billion laughs")
//	time             | context of Budget | work for a client that has disconnected
//
// Both formats give the same nodes, so errors have line and column in both. The
// package keeps no state; nodes belong to the caller. Tests: tables of accepted and
// rejected texts, and fuzzing: accepted YAML is written as valid JSON, and JSON is
// written unchanged.
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

// A Format is the notation of a document.
type Format int

const (
	YAML Format = iota
	JSONText
)

// FormatOf returns the format of a file by its extension: .json, .yaml, .yml.
func FormatOf(path string) (f Format, ok bool) {
	switch filepath.Ext(path) {
	case ".json":
		return JSONText, true
	case ".yaml", ".yml":
		return YAML, true
	}
	return 0, false
}

// An Error is an error at a position in a document.
type Error struct {
	Line   int // from 1
	Column int // from 1, in characters of YAML and in bytes of JSON; 0: unknown
	Msg    string
	Err    error // the cause, or nil; Msg contains its text
}

// Error returns "12:5: message", the form of compilers. Callers prepend the name of
// the file and a colon.
func (e *Error) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// At returns an Error at a node.
func At(n *yaml.Node, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Msg: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error at a node with err as its cause.
func Wrap(n *yaml.Node, err error) *Error {
	return &Error{Line: n.Line, Column: n.Column, Msg: err.Error(), Err: err}
}

// Read is ReadContext without a deadline. Use it for trusted texts.
func Read(data []byte, f Format) ([]*yaml.Node, error) {
	return ReadContext(context.Background(), data, f)
}

// ReadContext returns the roots of the documents in data, without empty documents.
// Errors: an *Error for invalid syntax or too many nodes; the error of ctx when it
// ends.
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

// text returns an error if data is not text in UTF-8.
func text(data []byte) error {
	at, found := bytes.IndexByte(data, 0), "a NUL byte"
	if !utf8.Valid(data) {
		for at = 0; ; {
			r, n := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		found = fmt.Sprintf("byte 0x%02x, which is not UTF-8", data[at])
	}
	if at < 0 {
		return nil
	}
	line, column := newPlaces(data).of(at)
	return &Error{Line: line, Column: column, Msg: "not a text file: found " + found}
}

// Resolve follows aliases to the node that they refer to.
func Resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Kind describes the value of a node for errors.
func Kind(n *yaml.Node) string {
	switch n = Resolve(n); n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return scalarKind(n)
	}
}

// scalarKind is Kind for a node that has no others below it.
func scalarKind(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool", "!!int", "!!float":
		return n.Value
	}
	return Quote(n.Value)
}

// Quote quotes a part of a document for errors. Long text is cut.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

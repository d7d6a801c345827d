package models

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxEntries is the maximum number of entries of a list in a value, and of members of an object in
// its JSON. An entry takes a hundred times its bytes while a list of short texts is checked, so
// MaxSize alone does not bound that memory.
const MaxEntries = 32 << 10

// fewEntries reports a list or object in data with more than MaxEntries entries. It does not see
// what follows a syntax error.
func fewEntries(data []byte) error {
	if len(data) <= 2*MaxEntries {
		return nil // an entry and its comma take 2 bytes
	}
	var (
		long  string // path of a list with too many entries
		depth int    // its depth
		count int    // its entries
	)
	for d := scan(data); ; {
		if _, err := d.ReadToken(); err != nil || d.StackDepth() < depth {
			break
		}
		in, n := d.StackIndex(d.StackDepth())
		entries := int(n)
		if in == '{' {
			entries /= 2
		}
		switch {
		case entries <= MaxEntries:
		case long == "":
			long, depth, count = pathOf(d), d.StackDepth(), entries
		case d.StackDepth() == depth:
			count = entries
		}
	}
	if depth == 0 {
		return nil
	}
	return fieldErrors{tooMany(long, count)}
}

// tooMany is the error of a field with so many entries.
func tooMany(path string, entries int) *FieldError {
	return &FieldError{Field: path, Expected: fmt.Sprintf("at most %s entries; it has %s", thousands(MaxEntries), thousands(entries))}
}

// pathOf returns the path of the list or object that d is in, as FieldErrors have it.
func pathOf(d *jsontext.Decoder) string {
	var path strings.Builder
	depth := 1
	for part := range d.StackPointer().Parent().Tokens() {
		switch in, _ := d.StackIndex(depth); {
		case in == '[':
			fmt.Fprintf(&path, "[%s]", part)
		case depth > 1:
			path.WriteString("." + part)
		default:
			path.WriteString(part)
		}
		depth++
	}
	return path.String()
}

package models

import (
	"bytes"
	"cmp"
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
	if bytes.Count(data, []byte(",")) < MaxEntries || !mayBeLong(data) {
		return nil
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
		case depth == 0:
			long, depth, count = pathOf(d), d.StackDepth(), entries
		case d.StackDepth() == depth:
			count = entries
		}
	}
	if depth == 0 {
		return nil
	}
	return fieldErrors{tooMany(cmp.Or(long, "the value"), count)}
}

// mayBeLong reports whether a list or object in data has more than MaxEntries entries, if data is JSON. It
// is many times as fast as reading the tokens.
func mayBeLong(data []byte) bool {
	const deepest = 10_000 // protojson reads no deeper
	var commas []int       // of each open list and object
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i = endOfText(data, i); i < 0 {
				return false
			}
		case '[', '{':
			if commas = append(commas, 0); len(commas) > deepest {
				return false
			}
		case ']', '}':
			commas = commas[:max(0, len(commas)-1)]
		case ',':
			if top := len(commas) - 1; top >= 0 {
				if commas[top]++; commas[top] >= MaxEntries {
					return true
				}
			}
		}
	}
	return false
}

// endOfText returns the offset of the quote that ends the text whose first quote is at i; -1 without one.
func endOfText(data []byte, i int) int {
	for {
		next := bytes.IndexByte(data[i+1:], '"')
		if next < 0 {
			return -1
		}
		text := data[i+1 : i+1+next]
		i += 1 + next
		if escapes := len(text) - len(bytes.TrimRight(text, `\`)); escapes%2 == 0 {
			return i
		}
	}
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

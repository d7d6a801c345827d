package show

import (
	"fmt"
	"io"
	"strings"
)

// brokenAt is the length from which a line of a source text is taken for one that its author has
// broken because it was full: the next line continues it.
const brokenAt = 90

// Fill breaks the paragraphs of a text, such as a help, into lines of at most so many columns. Lines
// that begin with a space, and short lines, stay as they are. A word that is longer gets a line
// of its own.
func Fill(text string, columns int) string {
	var out []string
	full := false // the line before was full
	for line := range strings.SplitSeq(text, "\n") {
		isText := line != "" && line[0] != ' '
		if full && isText {
			out[len(out)-1] += " " + line
		} else {
			out = append(out, line)
		}
		full = isText && len(line) >= brokenAt
	}
	for i, line := range out {
		if line != "" && line[0] != ' ' {
			out[i] = fill(line, columns)
		}
	}
	return strings.Join(out, "\n")
}

// fill breaks one paragraph.
func fill(text string, columns int) string {
	var out strings.Builder
	used := 0
	for word := range strings.SplitSeq(text, " ") {
		switch wide := Width(word); {
		case used == 0:
			used = wide
		case used+1+wide > columns:
			out.WriteByte('\n')
			used = wide
		default:
			out.WriteByte(' ')
			used += 1 + wide
		}
		out.WriteString(word)
	}
	return out.String()
}

// Hanging prints a text behind a head that takes so many columns. On a terminal the text is broken
// into lines, and begins in the same column on each.
func Hanging(out io.Writer, head string, columns int, text string) error {
	if IsTerminal(out) {
		width, _ := Size(out)
		text = strings.ReplaceAll(fill(text, max(width, usualWidth)-columns), "\n", "\n"+strings.Repeat(" ", columns))
	}
	_, err := fmt.Fprintf(out, "%-*s%s\n", columns, head, text)
	return err
}

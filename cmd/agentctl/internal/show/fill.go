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
// that begin with a space, and short lines, stay as they are. A word that is longer than a line stays
// where it is.
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
			out[i] = fill(line, columns, 0)
		}
	}
	return strings.Join(out, "\n")
}

// fill breaks one paragraph. All lines but the first one begin with so many spaces.
func fill(text string, columns, indent int) string {
	var out strings.Builder
	used := 0
	for word := range strings.SplitSeq(text, " ") {
		switch wide := Width(word); {
		case used == 0:
			used = wide
		case used+1+wide > columns && indent+wide <= columns:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent + wide
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
		text = strings.ReplaceAll(fill(text, max(width, usualWidth)-columns, 0), "\n", "\n"+strings.Repeat(" ", columns))
	}
	_, err := fmt.Fprintf(out, "%-*s%s\n", columns, head, text)
	return err
}

// leastText is the least width in which a text is broken into lines.
const leastText = 20

// Broken returns a text for out. On a terminal, lines that are wider than it are broken at spaces: the
// terminal itself would cut words at its edge. What follows begins so many columns further than the line.
// Other output, which programs read, stays exact.
func Broken(out io.Writer, text string, indent int) string {
	if !IsTerminal(out) {
		return text
	}
	columns, _ := Size(out)
	return BrokenAt(text, columns, indent)
}

// BrokenAt is Broken for a terminal with so many columns. Where a line leaves no room for a word, it stays whole.
func BrokenAt(text string, columns, indent int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		words := strings.TrimLeft(line, " ")
		lead := len(line) - len(words)
		if Width(line) > columns && columns-lead-indent >= leastText {
			lines[i] = strings.Repeat(" ", lead) + strings.ReplaceAll(fill(words, columns-lead, indent), "\n", "\n"+strings.Repeat(" ", lead))
		}
	}
	return strings.Join(lines, "\n")
}

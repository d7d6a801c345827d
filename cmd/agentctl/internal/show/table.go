package show

import (
	"io"
	"slices"
	"strings"
)

// gap is the space between two columns.
const gap = 2

// A Table prints rows in aligned columns. It is buffered: nothing is printed before End.
// Cells are made printable and one line each.
//
// On a terminal the lines fit its width: the widest cells are shortened in their middle,
// because names and keys differ at their ends. Other output, which programs read, is complete.
type Table struct {
	out   io.Writer
	rows  [][]string // those that are not printed yet; at first, the first one is the header
	most  int        // width of a line in columns of a terminal; 0: no limit
	whole []int      // columns that are not shortened where the others keep half of the line; the first counts most
	// The widths of the columns that were printed. Later rows are aligned with them.
	widths []int
}

// NewTable returns a table with a header.
func NewTable(out io.Writer, columns ...string) *Table {
	most := 0
	if IsTerminal(out) {
		width, _ := Size(out)
		most = max(width, usualWidth) // in less, no cell would be legible
	}
	return NewTableOf(most, out, columns...)
}

// NewTableOf returns a table with a header and with lines of at most this width; 0: no limit.
func NewTableOf(most int, out io.Writer, columns ...string) *Table {
	t := &Table{out: out, most: most}
	t.Row(columns...)
	return t
}

// Whole keeps the columns with these headers whole as long as half of the line is left to the others:
// names that people type, or short words, such as states. The first header counts most. It is called
// before the first End.
func (t *Table) Whole(columns ...string) {
	for _, header := range columns {
		if i := slices.Index(t.rows[0], header); i >= 0 {
			t.whole = append(t.whole, i)
		}
	}
}

// Row adds one line. Rows may have fewer cells than the header.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Line(c)
	}
	t.rows = append(t.rows, row)
}

// End prints the table without trailing spaces. Rows that are added later are printed by the next
// End, below the same header.
func (t *Table) End() error {
	t.widths = widened(t.widths, t.rows)
	widths := t.fit()
	var b strings.Builder
	for _, row := range t.rows {
		b.WriteString(lineOf(row, widths))
	}
	t.rows = nil
	_, err := io.WriteString(t.out, b.String())
	return err
}

// fit returns the widths of the columns on the line.
func (t *Table) fit() []int {
	if t.most == 0 {
		return t.widths
	}
	whole := make([]bool, len(t.widths))
	taken := 0
	for _, i := range t.whole {
		if with := taken + t.widths[i] + gap; with <= t.most/2 {
			whole[i], taken = true, with
		}
	}
	var others []int
	for i, w := range t.widths {
		if !whole[i] {
			others = append(others, w)
		}
	}
	others = fitted(others, t.most-taken)
	out := slices.Clone(t.widths)
	for i := range out {
		if !whole[i] {
			out[i], others = others[0], others[1:]
		}
	}
	return out
}

// widened returns the width of each column: that of its widest cell, but at least the one before.
func widened(before []int, rows [][]string) []int {
	out := slices.Clone(before)
	for _, row := range rows {
		for i, cell := range row {
			if i == len(out) {
				out = append(out, 0)
			}
			out[i] = max(out[i], Width(cell))
		}
	}
	return out
}

// fitted reduces the widest columns until all columns and the gaps between them fit most.
// If even columns of one character do not fit, lines are longer. Without a limit, 0, the
// widths stay.
func fitted(widths []int, most int) []int {
	room := most - gap*(len(widths)-1)
	if most == 0 || len(widths) == 0 || sum(widths) <= room {
		return widths
	}
	// The largest limit of a column with which all of them fit.
	limit := 1
	for limit < slices.Max(widths) && sum(limited(widths, limit+1)) <= room {
		limit++
	}
	out := limited(widths, limit)
	// The columns at the limit share the rest of the line.
	for i, rest := 0, room-sum(out); i < len(out) && rest > 0; i++ {
		if out[i] < widths[i] {
			out[i]++
			rest--
		}
	}
	return out
}

// limited returns the widths, none of them above limit.
func limited(widths []int, limit int) []int {
	out := make([]int, len(widths))
	for i, w := range widths {
		out[i] = min(w, limit)
	}
	return out
}

// sum returns the sum of widths.
func sum(widths []int) (n int) {
	for _, w := range widths {
		n += w
	}
	return n
}

// lineOf returns a row with cells that are shortened and padded to their widths.
func lineOf(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		cell = Shorten(cell, widths[i])
		b.WriteString(cell + strings.Repeat(" ", widths[i]-Width(cell)+gap))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

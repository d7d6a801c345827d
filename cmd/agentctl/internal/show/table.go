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
// On a terminal the lines fit its width. A reason is never cut: it has lines of its own below its
// row, with the name of its column. Names lose the beginning that they share, and never their end.
// Other cells that are too wide are shortened in their middle. Other output, which programs read,
// has a column for each cell, and is complete.
type Table struct {
	out  io.Writer
	rows []row // those that are not printed yet; at first, the first one is the header
	most int   // width of a line in columns of a terminal; 0: no limit
	// The header as the caller gave it. Columns of reasons are left out of the rows if there is a limit.
	header []string
	whole  []int // columns that are not shortened where the others keep half of the line; the first counts most
	// The widths of the columns that were printed. Later rows are aligned with them.
	widths []int
}

// A row is a line of a table, and what belongs below it.
type row struct {
	cells   []string
	reasons []string // each with the name of its column; nil: none
}

// The headers of columns with reasons, and of those with names. All other columns have words,
// numbers or contents.
var (
	reasonHeaders = []string{"ERROR", "REASON", "DETAILS", "NOTE"}
	nameHeaders   = []string{"NAME", "KEY", "MODEL", "KEY PREFIX", "PROTO MESSAGE", "SOURCE", "LABEL", "CONNECTION", "LOGGER", "METRIC", "DESCRIPTOR", "OLDEST PENDING"}
)

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
	t := &Table{out: out, most: most, header: columns}
	t.Row(columns...)
	t.rows[0].reasons = nil
	return t
}

// below reports whether the cells of a column are on lines of their own, below their rows.
func (t *Table) below(column int) bool {
	return t.most > 0 && column < len(t.header) && slices.Contains(reasonHeaders, t.header[column])
}

// Whole keeps the columns with these headers whole as long as half of the line is left to the others:
// names that people type, or short words, such as states. The first header counts most. It is called
// before the first End.
func (t *Table) Whole(columns ...string) {
	for _, header := range columns {
		if i := slices.Index(t.rows[0].cells, header); i >= 0 {
			t.whole = append(t.whole, i)
		}
	}
}

// Row adds one line. Rows may have fewer cells than the header.
func (t *Table) Row(cells ...string) {
	var out row
	for i, c := range cells {
		switch {
		case !t.below(i):
			out.cells = append(out.cells, Line(c))
		case c != "":
			out.reasons = append(out.reasons, strings.ToLower(t.header[i])+": "+Line(c))
		}
	}
	t.rows = append(t.rows, out)
}

// End prints the table without trailing spaces. Rows that are added later are printed by the next
// End, below the same header.
func (t *Table) End() error {
	names := t.names()
	widths := widened(t.widths, t.rows)
	if t.most > 0 {
		t.shareless(names, widths)
		widths = widened(t.widths, t.rows)
	}
	t.widths = widths
	widths = t.fit()
	var b strings.Builder
	for _, r := range t.rows {
		b.WriteString(lineOf(r.cells, widths, names))
		for _, text := range r.reasons {
			b.WriteString(BrokenAt(reasonIndent+text, t.most, 2) + "\n")
		}
	}
	t.rows = nil
	_, err := io.WriteString(t.out, b.String())
	return err
}

// reasonIndent begins the line of a reason.
const reasonIndent = "    "

// names reports for each column whether it has names.
func (t *Table) names() []bool {
	var out []bool
	for i, header := range t.header {
		if !t.below(i) {
			out = append(out, slices.Contains(nameHeaders, header))
		}
	}
	return out
}

// shareless takes from the names the beginning that all of a column share, the widest column first,
// until the lines fit. Columns that stay whole keep it.
func (t *Table) shareless(names []bool, widths []int) {
	whole := t.wholes(widths)
	order := make([]int, 0, len(widths))
	for i := range widths {
		if i < len(names) && names[i] && !whole[i] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return widths[b] - widths[a] })
	for _, column := range order {
		if sum(widths)+gap*(len(widths)-1) <= t.most {
			return
		}
		all := t.cellsOf(column)
		shared := sharedBeginning(all)
		for _, cell := range all {
			if shared != "" {
				*cell = ellipsis + strings.TrimPrefix(*cell, shared)
			}
		}
		widths[column] = widened(nil, t.rows)[column]
	}
}

// cellsOf returns the names in a column, without the header.
func (t *Table) cellsOf(column int) (out []*string) {
	for i, r := range t.rows {
		isHeader := i == 0 && t.widths == nil
		if !isHeader && column < len(r.cells) && r.cells[column] != "" {
			out = append(out, &r.cells[column])
		}
	}
	return out
}

// sharedBeginning returns the longest beginning of at least two names that ends with a whole part, and
// leaves something of each; empty: there is none.
func sharedBeginning(all []*string) string {
	if len(all) < 2 {
		return ""
	}
	separator := "/"
	if !strings.Contains(*all[0], separator) {
		separator = "." // as in names of models
	}
	shared := *all[0]
	for _, name := range all {
		for !strings.HasPrefix(*name, shared) || len(*name) == len(shared) {
			shared = shared[:strings.LastIndex(strings.TrimSuffix(shared, separator), separator)+1]
		}
	}
	return shared
}

// fit returns the widths of the columns on the line.
func (t *Table) fit() []int {
	if t.most == 0 {
		return t.widths
	}
	whole := t.wholes(t.widths)
	taken := 0
	var others []int
	for i, w := range t.widths {
		if whole[i] {
			taken += w + gap
		} else {
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

// wholes reports for each column of these widths whether it stays whole.
func (t *Table) wholes(widths []int) []bool {
	out := make([]bool, len(widths))
	taken := 0
	for _, i := range t.whole {
		if with := taken + widths[i] + gap; with <= t.most/2 {
			out[i], taken = true, with
		}
	}
	return out
}

// widened returns the width of each column: that of its widest cell, but at least the one before.
func widened(before []int, rows []row) []int {
	out := slices.Clone(before)
	for _, r := range rows {
		for i, cell := range r.cells {
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

// lineOf returns cells that are shortened and padded to their widths. Those of names keep their ends.
func lineOf(cells []string, widths []int, names []bool) string {
	var b strings.Builder
	for i, cell := range cells {
		if i < len(names) && names[i] {
			cell = endOf(cell, widths[i])
		}
		cell = Shorten(cell, widths[i])
		b.WriteString(cell + strings.Repeat(" ", widths[i]-Width(cell)+gap))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

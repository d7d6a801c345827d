package show

import (
	"io"
	"strings"
	"text/tabwriter"
)

// A Table prints rows in aligned columns. It is buffered: nothing is printed before End.
// Cells are made printable and one line each.
type Table struct {
	*tabwriter.Writer
	// The aligned text. It is kept until End, which removes the padding after the last column.
	text *strings.Builder
	out  io.Writer
}

// NewTable returns a table with a header.
func NewTable(out io.Writer, columns ...string) Table {
	text := new(strings.Builder)
	t := Table{tabwriter.NewWriter(text, 0, 8, 2, ' ', 0), text, out}
	t.Row(columns...)
	return t
}

// Row adds one line. It modifies cells.
func (t Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = Line(c)
	}
	_, _ = io.WriteString(t, strings.Join(cells, "\t")+"\n") // a strings.Builder never fails
}

// End prints the table without trailing spaces.
func (t Table) End() error {
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := io.WriteString(t.out, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

package cli

import (
	"io"
	"strings"
	"text/tabwriter"

	"github.com/keyplane/keyplane/internal/printable"
)

// A table prints rows in aligned columns. It is buffered: nothing is printed before end.
// Cells are made printable and one line each.
type table struct {
	*tabwriter.Writer
	// The aligned text. It is kept until end, which removes the padding after the last column.
	text *strings.Builder
	out  io.Writer
}

// newTable returns a table with a header.
func newTable(out io.Writer, columns ...string) table {
	text := new(strings.Builder)
	t := table{tabwriter.NewWriter(text, 0, 8, 2, ' ', 0), text, out}
	t.row(columns...)
	return t
}

// row adds one line. It modifies cells.
func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	_, _ = io.WriteString(t, strings.Join(cells, "\t")+"\n") // a strings.Builder never fails
}

// end prints the table without trailing spaces.
func (t table) end() error {
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

// oneLine returns text from outside on one line, without control characters.
func oneLine(s string) string { return printable.Line(s) }

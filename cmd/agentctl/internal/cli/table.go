package cli

import (
	"io"
	"strings"
	"text/tabwriter"

	"github.com/keyplane/keyplane/internal/printable"
)

// A table has columns of equal width; cells are one line each, and printable. It is
// written at its end.
type table struct {
	*tabwriter.Writer
	text *strings.Builder
	out  io.Writer
}

func newTable(out io.Writer, columns ...string) table {
	text := new(strings.Builder)
	t := table{tabwriter.NewWriter(text, 0, 8, 2, ' ', 0), text, out}
	t.row(columns...)
	return t
}

func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	_, _ = io.WriteString(t, strings.Join(cells, "\t")+"\n") // a Builder takes everything
}

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

// oneLine is text from outside on one line.
func oneLine(s string) string { return printable.Line(s) }

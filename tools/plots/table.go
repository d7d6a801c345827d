package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A table is one table of a document.
type table struct {
	head []string
	body [][]string // cells, without Markdown's emphasis
}

var (
	errNoTable  = errors.New("there is no such table")
	errNoFigure = errors.New("no column has a figure in the unit of the bar")
)

// tableBelow returns the first table with a column "bar" below a heading.
func tableBelow(text, heading string) (*table, error) {
	_, text, found := strings.Cut(text, "\n## "+heading+"\n")
	if !found {
		return nil, fmt.Errorf("heading %q: %w", heading, errNoTable)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var t table
	for line := range strings.Lines(text) {
		cells, ok := cellsOf(line)
		switch {
		case !ok && len(t.body) > 0:
			return &t, nil
		case !ok:
			t.head = nil
		case t.head == nil:
			t.head = cells
		case !slices.Contains(t.head, "bar"): // of another table
		case strings.Trim(cells[0], "-: ") == "" && len(t.body) == 0: // the line below the head
		default:
			t.body = append(t.body, cells)
		}
	}
	if len(t.body) == 0 {
		return nil, fmt.Errorf("a table with a column %q below %q: %w", "bar", heading, errNoTable)
	}
	return &t, nil
}

// cellsOf splits a line of a table.
func cellsOf(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil, false
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.NewReplacer("**", "", "`", "").Replace(c))
	}
	return cells, true
}

// A row is one figure with its bar.
type row struct {
	what, bar string
	points    []*point // by column; nil: nothing was measured
}

// A point is what was measured, as a multiple of the bar: above 1 it is worse.
type point struct {
	low, high float64
	text      string
}

// rows returns the rows that have a bar.
func (t *table) rows(columns []string) (out []row, err error) {
	at := func(name string) int { return slices.Index(t.head, name) }
	for _, name := range append([]string{"bar"}, columns...) {
		if at(name) < 0 {
			return nil, fmt.Errorf("column %q: %w", name, errNoTable)
		}
	}
	for _, cells := range t.body {
		if len(cells) < len(t.head) {
			cells = append(cells, make([]string, len(t.head)-len(cells))...)
		}
		r := row{what: cells[0], bar: cells[at("bar")]}
		measured, drawn := false, false
		for _, name := range columns {
			p := compare(r.bar, cells[at(name)], name, columns)
			r.points = append(r.points, p)
			measured = measured || len(figures(cells[at(name)])) > 0
			drawn = drawn || p != nil
		}
		switch {
		case drawn:
			out = append(out, r)
		case measured && bound(r.bar):
			err = errors.Join(err, fmt.Errorf("%q, bar %q: %w", r.what, r.bar, errNoFigure))
		}
	}
	return out, err
}

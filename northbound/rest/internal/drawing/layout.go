package drawing

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Layout positions the boxes. Components without a common edge are stacked, and
// share the columns.
func Layout(g Graph) *Drawing {
	l := newLayout(g)
	var parts []part
	for _, boxes := range l.connected() {
		p := l.columns(boxes)
		l.order(p)
		parts = append(parts, p)
	}
	return l.place(parts)
}

// A part is a connected component: the boxes of each column from top to bottom.
type part [][]int

// layout is the state of one call of Layout. All slices are indexed by box.
type layout struct {
	Graph
	out, in [][]int // targets and origins of its edges
	column  []int   // by box
	row     []int   // row in the column of its part
}

// newLayout indexes the edges. Edges from a box to itself are ignored.
func newLayout(g Graph) *layout {
	n := len(g.Boxes)
	l := &layout{Graph: g, out: make([][]int, n), in: make([][]int, n), column: make([]int, n), row: make([]int, n)}
	for _, e := range g.Edges {
		if e.From != e.To {
			l.out[e.From] = append(l.out[e.From], e.To)
			l.in[e.To] = append(l.in[e.To], e.From)
		}
	}
	return l
}

// connected returns the boxes of each component, in ascending order.
func (l *layout) connected() (out [][]int) {
	visited := make([]bool, len(l.Boxes))
	for first := range l.Boxes {
		if visited[first] {
			continue
		}
		visited[first] = true
		boxes := []int{first}
		for next := 0; next < len(boxes); next++ {
			for _, near := range [][]int{l.out[boxes[next]], l.in[boxes[next]]} {
				for _, i := range near {
					if !visited[i] {
						visited[i] = true
						boxes = append(boxes, i)
					}
				}
			}
		}
		slices.Sort(boxes)
		out = append(out, boxes)
	}
	return out
}

// columns places each box one column to the right of all its targets. A cycle is
// broken at its first box, which becomes the leftmost.
func (l *layout) columns(boxes []int) (p part) {
	missing := make(map[int]int, len(boxes)) // number of targets without a column
	done := make(map[int]bool, len(boxes))
	var ready []int
	for _, i := range boxes {
		missing[i] = len(l.out[i])
		if missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	for next := 0; len(done) < len(boxes); {
		if len(ready) == 0 {
			for done[boxes[next]] {
				next++
			}
			ready = append(ready, boxes[next])
		}
		i := ready[0]
		ready = ready[1:]
		if done[i] {
			continue
		}
		done[i] = true
		p = p.with(i, l.column[i])
		for _, from := range l.in[i] {
			if missing[from]--; !done[from] {
				l.column[from] = max(l.column[from], l.column[i]+1)
				if missing[from] == 0 {
					ready = append(ready, from)
				}
			}
		}
	}
	return p
}

// with appends a box to a column.
func (p part) with(box, column int) part {
	for len(p) <= column {
		p = append(p, nil)
	}
	p[column] = append(p[column], box)
	return p
}

// order sorts each column by the positions of its neighbours, alternately from both
// sides, so that few edges cross (barycentre heuristic).
func (l *layout) order(p part) {
	for _, column := range p {
		slices.Sort(column)
		l.number(column)
	}
	for range 3 {
		for _, column := range p {
			l.sortBy(column, l.out)
		}
		for _, column := range slices.Backward(p) {
			l.sortBy(column, l.in)
		}
	}
	for _, column := range p {
		l.sortBy(column, l.out)
	}
}

// sortBy sorts a column by the average row of the neighbours. Boxes without
// neighbours keep their row.
func (l *layout) sortBy(column []int, neighbours [][]int) {
	if len(column) < 2 {
		return
	}
	centre := make(map[int]float64, len(column))
	for _, i := range column {
		centre[i] = float64(l.row[i])
		if near := neighbours[i]; len(near) > 0 {
			sum := 0
			for _, j := range near {
				sum += l.row[j]
			}
			centre[i] = float64(sum) / float64(len(near))
		}
	}
	slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(centre[a], centre[b]) })
	l.number(column)
}

// number records the rows of a sorted column.
func (l *layout) number(column []int) {
	for row, i := range column {
		l.row[i] = row
	}
}

// place computes the positions. Each box is at the height of its targets if there is
// room.
func (l *layout) place(parts []part) *Drawing {
	d := &Drawing{Graph: l.Graph, Places: make([]Rect, len(l.Boxes))}
	lefts := l.lefts(parts, d)
	top := margin
	for _, p := range parts {
		bottom := top
		for c, column := range p {
			y := top
			for _, i := range column {
				y = max(y, l.height(d, i))
				d.Places[i] = Rect{lefts[c], y, l.width(i), boxH}
				y += boxH + rowGap
			}
			bottom = max(bottom, y)
		}
		d.Height = bottom - rowGap + margin
		top = bottom
	}
	return d
}

// lefts returns the left edge of each column, and sets the width of the drawing.
func (l *layout) lefts(parts []part, d *Drawing) (out []int) {
	var widths []int
	for _, p := range parts {
		for c, column := range p {
			if c == len(widths) {
				widths = append(widths, 0)
			}
			for _, i := range column {
				widths[c] = max(widths[c], l.width(i))
			}
		}
	}
	x := margin
	for _, w := range widths {
		out = append(out, x)
		d.Width = x + w + margin
		x += w + columnAt
	}
	return out
}

// width returns the width of a box.
func (l *layout) width(i int) int {
	return utf8.RuneCountInString(l.Boxes[i].Label)*letter + 2*padding
}

// height returns the best height of box i: the average of its targets in columns to
// the left, which are positioned already.
func (l *layout) height(d *Drawing, i int) int {
	sum, n := 0, 0
	for _, j := range l.out[i] {
		if l.column[j] < l.column[i] {
			sum += d.Places[j].Y
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

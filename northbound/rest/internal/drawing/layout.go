package drawing

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Layout gives each box its place. What no edge connects is laid out by itself, one
// below the other, in common columns.
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

// A part is the boxes that edges connect: by column, from top to bottom.
type part [][]int

type layout struct {
	Graph
	out, in [][]int // by box: what its edges point to, and where they come from
	column  []int   // by box
	row     []int   // by box: place in the column of its part
}

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

// connected are the boxes of each part, in their order.
func (l *layout) connected() (out [][]int) {
	seen := make([]bool, len(l.Boxes))
	for first := range l.Boxes {
		if seen[first] {
			continue
		}
		seen[first] = true
		boxes := []int{first}
		for next := 0; next < len(boxes); next++ {
			for _, near := range [][]int{l.out[boxes[next]], l.in[boxes[next]]} {
				for _, i := range near {
					if !seen[i] {
						seen[i] = true
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

// columns puts each box one column right of all that it points to. In a ring the
// first box is the leftmost.
func (l *layout) columns(boxes []int) (p part) {
	missing := make(map[int]int, len(boxes)) // how many of out have no column yet
	done := make(map[int]bool, len(boxes))
	var ready []int
	for _, i := range boxes {
		if missing[i] = len(l.out[i]); missing[i] == 0 {
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

func (p part) with(box, column int) part {
	for len(p) <= column {
		p = append(p, nil)
	}
	p[column] = append(p[column], box)
	return p
}

// order sorts each column by where the neighbours of its boxes are, to and fro, so
// that few edges cross.
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

func (l *layout) number(column []int) {
	for row, i := range column {
		l.row[i] = row
	}
}

// place stacks the parts, and the boxes of each column of them, each at the height
// of what it points to where there is room.
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

// lefts are where the columns begin; it notes the width of them all.
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

func (l *layout) width(i int) int {
	return utf8.RuneCountInString(l.Boxes[i].Label)*letter + 2*padding
}

// height is where box i would be best: in the middle of what it points to in
// columns that have their places.
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

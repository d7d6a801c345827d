package drawing

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Layout gives each box its place.
func Layout(g Graph) *Drawing {
	l := newLayout(g)
	l.columns()
	l.order()
	return l.place()
}

type layout struct {
	Graph
	out, in [][]int // by box: what its edges point to, and where they come from
	column  []int
	members [][]int // by column, from top to bottom
	row     []int   // place in its column
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

// columns puts each box one column right of all that it points to. In a ring the
// first box is the leftmost.
func (l *layout) columns() {
	missing := make([]int, len(l.Boxes)) // how many of out have no column yet
	done := make([]bool, len(l.Boxes))
	var ready []int
	for i, out := range l.out {
		if missing[i] = len(out); missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	next := 0 // boxes before it are done
	for {
		if len(ready) == 0 {
			for next < len(done) && done[next] {
				next++
			}
			if next == len(done) {
				return
			}
			ready = append(ready, next)
		}
		i := ready[0]
		ready = ready[1:]
		if done[i] {
			continue
		}
		done[i] = true
		l.add(i)
		for _, from := range l.in[i] {
			l.column[from] = max(l.column[from], l.column[i]+1)
			if missing[from]--; missing[from] == 0 && !done[from] {
				ready = append(ready, from)
			}
		}
	}
}

func (l *layout) add(i int) {
	for len(l.members) <= l.column[i] {
		l.members = append(l.members, nil)
	}
	l.members[l.column[i]] = append(l.members[l.column[i]], i)
}

// order sorts each column by where the neighbours of its boxes are, to and fro, so
// that few edges cross.
func (l *layout) order() {
	for _, column := range l.members {
		slices.Sort(column)
		l.number(column)
	}
	for range 3 {
		for _, column := range l.members {
			l.sortBy(column, l.out)
		}
		for _, column := range slices.Backward(l.members) {
			l.sortBy(column, l.in)
		}
	}
	for _, column := range l.members {
		l.sortBy(column, l.out)
	}
}

func (l *layout) sortBy(column []int, neighbours [][]int) {
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

// place stacks the boxes of each column, each at the height of what it points to
// where there is room.
func (l *layout) place() *Drawing {
	d := &Drawing{Graph: l.Graph, Places: make([]Rect, len(l.Boxes))}
	x := margin
	for _, column := range l.members {
		width, y := 0, margin
		for _, i := range column {
			w := utf8.RuneCountInString(l.Boxes[i].Label)*letter + 2*padding
			y = max(y, l.height(d, i))
			d.Places[i] = Rect{x, y, w, boxH}
			y += boxH + rowGap
			width = max(width, w)
		}
		d.Height = max(d.Height, y-rowGap+margin)
		x += width + columnAt
		d.Width = x - columnAt + margin
	}
	return d
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

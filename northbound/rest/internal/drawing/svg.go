package drawing

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// SVG writes the drawing as a picture of its own.
func (d *Drawing) SVG(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="11">
<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, d.Width, d.Height, d.Width, d.Height)
	for _, e := range d.Edges {
		from, to := d.ends(e)
		middle := (from.X + to.X) / 2
		fmt.Fprintf(out, `<path d="M%d,%d C%d,%d %d,%d %d,%d" fill="none" stroke="#555"%s marker-end="url(#arrow)"/>`+"\n",
			from.X, from.Y, middle, from.Y, middle, to.Y, to.X, to.Y, dashes(e.Dashed))
	}
	for i, b := range d.Boxes {
		r := d.Places[i]
		fmt.Fprintf(out, `<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="#333" stroke-width="%d"%s/><text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs">%s</text></g>`+"\n",
			escaped(b.Tip), r.X, r.Y, r.W, r.H, b.Fill, thickness(b.Bold), dashes(b.Dashed), r.X+padding, r.Y+baseline, r.W-2*padding, escaped(b.Label))
	}
	fmt.Fprint(out, "</svg>\n")
	return out.Flush()
}

// baseline is where the letters of a box stand, below its top.
const baseline = 15

// A point is a place on the paper.
type point struct{ X, Y int }

// ends are where an edge begins and ends: at the left of a box, and at the right of
// what it points to; or the other way where that is not left of it.
func (d *Drawing) ends(e Edge) (from, to point) {
	a, b := d.Places[e.From], d.Places[e.To]
	from, to = point{a.X, a.Y + a.H/2}, point{b.X + b.W, b.Y + b.H/2}
	if b.X >= a.X {
		from.X, to.X = a.X+a.W, b.X
	}
	return from, to
}

func dashes(on bool) string {
	if on {
		return ` stroke-dasharray="4 3"`
	}
	return ""
}

func thickness(bold bool) int {
	if bold {
		return 3
	}
	return 1
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

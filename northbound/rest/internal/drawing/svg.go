package drawing

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// SVG writes the drawing as a self-contained SVG document.
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

// baseline is the distance from the top of a box to the baseline of its text.
const baseline = 15

// A point is a position in pixels.
type point struct{ X, Y int }

// ends returns both ends of an edge: the left side of its box, and the right side of
// the target. If the target is not to the left, the sides are swapped.
func (d *Drawing) ends(e Edge) (from, to point) {
	a, b := d.Places[e.From], d.Places[e.To]
	from, to = point{a.X, a.Y + a.H/2}, point{b.X + b.W, b.Y + b.H/2}
	if b.X >= a.X {
		from.X, to.X = a.X+a.W, b.X
	}
	return from, to
}

// dashes returns the SVG attribute of dashed lines.
func dashes(on bool) string {
	if on {
		return ` stroke-dasharray="4 3"`
	}
	return ""
}

// thickness returns the line width.
func thickness(bold bool) int {
	if bold {
		return 3
	}
	return 1
}

// escaped returns s as XML text.
func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder never fails
	return b.String()
}

package main

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A shade is a colour of a plot on a light and on a dark page. Both have enough contrast to
// their background.
type shade struct{ light, dark uint32 }

var (
	ground = shade{0xFFFFFF, 0x0D1117}
	ink    = shade{0x1F2328, 0xE6EDF3}
	faint  = shade{0x59636E, 0x9198A1}
	grid   = shade{0xD1D9E0, 0x3D444D}
	limit  = shade{0xD1242F, 0xFF7B72}
	series = [...]shade{{0x0969DA, 0x4493F8}, {0xBC4C00, 0xF0883E}, {0x1A7F37, 0x3FB950}, {0x8250DF, 0xAB7DF8}, {0x9A6700, 0xD29922}}
)

// RGBA implements color.Color with the shade for a light page.
func (s shade) RGBA() (r, g, b, a uint32) {
	return color.RGBA{R: uint8(s.light >> 16), G: uint8(s.light >> 8), B: uint8(s.light), A: 0xFF}.RGBA()
}

// line is a style of lines.
func (s shade) line(width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: s, Width: width, Dashes: dashes}
}

// text is a style of texts that begin at a point.
func (s shade) text(size vg.Length) draw.TextStyle {
	return draw.TextStyle{Color: s, Font: sans(size), XAlign: draw.XLeft, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
}

// sans is a font without serifs.
func sans(size vg.Length) font.Font {
	f := font.From(plot.DefaultFont, size)
	f.Variant = "Sans"
	return f
}

// newPlot is an empty plot in our colours.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = ground
	p.Title.Text = title
	p.Title.TextStyle.Color, p.Title.TextStyle.Font = ink, sans(12)
	p.Title.Padding = 6
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color, axis.Tick.Label.Color, axis.Label.TextStyle.Color = faint, faint, faint, faint
		axis.Tick.LineStyle.Color = faint
		axis.Tick.Label.Font, axis.Label.TextStyle.Font = sans(9), sans(9)
	}
	p.Legend.TextStyle = ink.text(9)
	return p
}

// svgOf returns the document of a canvas. A page in dark colours gets the dark shades: the
// rules of a style sheet win over the attributes that the library writes.
func svgOf(c *vgsvg.Canvas) ([]byte, error) {
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return nil, err
	}
	var rules bytes.Buffer
	rules.WriteString("<style>\ntext { font-family: 'Liberation Sans', Arial, Helvetica, sans-serif !important; }\n@media (prefers-color-scheme: dark) {\n")
	for _, s := range append([]shade{ground, ink, faint, grid, limit}, series[:]...) {
		for _, what := range []string{"fill", "stroke"} {
			fmt.Fprintf(&rules, "[style*=\"%[1]s:#%06[2]X\"] { %[1]s: #%06[3]X !important; }\n", what, s.light, s.dark)
		}
	}
	rules.WriteString("}\n</style>\n")
	head := []byte("xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n")
	before, after, _ := bytes.Cut(out.Bytes(), head)
	return bytes.Join([][]byte{before, head, rules.Bytes(), after}, nil), nil
}

package drawing

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// ErrTooLarge reports that the drawing has too many pixels for a PNG.
var ErrTooLarge = errors.New("the graph is too large for a PNG: expected SVG")

// maxPixels bounds the memory for a PNG: a paletted image needs one byte per pixel.
const maxPixels = 50_000_000

// PNG writes the drawing as a bitmap, or returns ErrTooLarge.
func (d *Drawing) PNG(w io.Writer) error {
	if d.Width*d.Height > maxPixels {
		return fmt.Errorf("%w (%d x %d pixels)", ErrTooLarge, d.Width, d.Height)
	}
	c := d.canvas()
	for _, e := range d.Edges {
		from, to := d.ends(e)
		c.line(from, to, e.Dashed)
	}
	for i, b := range d.Boxes {
		c.box(b, d.Places[i])
	}
	return png.Encode(w, c.Paletted)
}

// A canvas is the image with the palette of the drawing.
type canvas struct{ *image.Paletted }

// canvas returns an empty image. Its palette contains the fill colours, up to the
// format's 256.
func (d *Drawing) canvas() canvas {
	palette := color.Palette{color.White, color.Black, edgeColor()}
	known := map[string]bool{}
	for _, b := range d.Boxes {
		if !known[b.Fill] && len(palette) < 256 {
			known[b.Fill] = true
			palette = append(palette, rgb(b.Fill))
		}
	}
	return canvas{image.NewPaletted(image.Rect(0, 0, max(d.Width, 1), max(d.Height, 1)), palette)}
}

// edgeColor is the colour of edges.
func edgeColor() color.Color { return color.Gray{0x55} }

// rgb parses "#rrggbb"; other text is white.
func rgb(s string) color.Color {
	n, err := strconv.ParseUint(s[min(1, len(s)):], 16, 24)
	if err != nil {
		return color.White
	}
	return color.RGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 0xff}
}

// line draws a straight line that ends with a small square as arrow head.
func (c canvas) line(from, to point, dashed bool) {
	steps := max(abs(to.X-from.X), abs(to.Y-from.Y), 1)
	for i := range steps + 1 {
		if dashed && i%7 > 3 {
			continue
		}
		c.Set(from.X+(to.X-from.X)*i/steps, from.Y+(to.Y-from.Y)*i/steps, edgeColor())
	}
	c.fill(image.Rect(to.X-2, to.Y-2, to.X+3, to.Y+3), edgeColor())
}

// box draws a box with its label.
func (c canvas) box(b Box, r Rect) {
	outer := image.Rect(r.X, r.Y, r.X+r.W, r.Y+r.H)
	c.fill(outer, color.Black)
	inner := outer.Inset(thickness(b.Bold))
	c.fill(inner, rgb(b.Fill))
	if b.Dashed {
		for x := inner.Min.X; x < inner.Max.X; x += 7 {
			c.fill(image.Rect(x, outer.Min.Y, x+3, outer.Max.Y), rgb(b.Fill))
		}
	}
	text := font.Drawer{Dst: c, Src: image.Black, Face: basicfont.Face7x13, Dot: fixed.P(r.X+padding, r.Y+baseline)}
	text.DrawString(b.Label)
}

// fill fills a rectangle.
func (c canvas) fill(r image.Rectangle, with color.Color) {
	draw.Draw(c, r, image.NewUniform(with), image.Point{}, draw.Src)
}

// abs returns the absolute value.
func abs(n int) int { return max(n, -n) }

package drawing

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"sort"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// ErrTooLarge reports that the drawing has too many pixels for a PNG.
var ErrTooLarge = errors.New("the graph is too large for a PNG: expected SVG")

// maxPixels bounds the time for a PNG.
const maxPixels = 50_000_000

// bandBytes is about the memory, in bytes, of the part of the bitmap that exists at a time. Each
// pixel needs one byte.
const bandBytes = 1 << 20

// PNG writes the drawing as a bitmap, or returns ErrTooLarge. It takes about bandBytes of memory
// for pixels, however large the drawing is.
func (d *Drawing) PNG(w io.Writer) error {
	if d.Width*d.Height > maxPixels {
		return fmt.Errorf("%w (%d x %d pixels)", ErrTooLarge, d.Width, d.Height)
	}
	return png.Encode(w, d.bitmap(bandBytes))
}

// A bitmap is an image that is drawn in bands, from top to bottom, while a reader goes through
// its rows.
type bitmap struct {
	*Drawing
	palette color.Palette
	bounds  image.Rectangle
	rows    int    // of a band
	band    canvas // the band of the last pixel that was read
}

// bitmap returns the image of the drawing. Its palette contains the fill colours, up to the
// format's 256.
func (d *Drawing) bitmap(bytes int) *bitmap {
	palette := color.Palette{color.White, color.Black, edgeColor()}
	known := map[string]bool{}
	for _, b := range d.Boxes {
		if !known[b.Fill] && len(palette) < 256 {
			known[b.Fill] = true
			palette = append(palette, rgb(b.Fill))
		}
	}
	width := max(d.Width, 1)
	b := &bitmap{Drawing: d, palette: palette, bounds: image.Rect(0, 0, width, max(d.Height, 1)), rows: max(bytes/width, 1)}
	b.band = canvas{image.NewPaletted(image.Rectangle{}, palette)}
	return b
}

// Bounds, ColorModel, At and ColorIndexAt implement image.PalettedImage, as which the encoder
// writes an index for each pixel.
func (b *bitmap) Bounds() image.Rectangle { return b.bounds }

// ColorModel implements image.PalettedImage.
func (b *bitmap) ColorModel() color.Model { return b.palette }

// At implements image.PalettedImage.
func (b *bitmap) At(x, y int) color.Color { return b.palette[b.ColorIndexAt(x, y)] }

// ColorIndexAt implements image.PalettedImage. It draws another band if the row is in none.
func (b *bitmap) ColorIndexAt(x, y int) uint8 {
	if at := b.band.Rect; y < at.Min.Y || y >= at.Max.Y {
		b.draw(y)
	}
	return b.band.ColorIndexAt(x, y)
}

// draw draws the band that begins at row top. What lies beyond it is clipped.
func (b *bitmap) draw(top int) {
	rect := image.Rect(0, top, b.bounds.Max.X, min(top+b.rows, b.bounds.Max.Y))
	if n := rect.Dx() * rect.Dy(); n <= cap(b.band.Pix) {
		b.band.Pix = b.band.Pix[:n]
		clear(b.band.Pix) // index 0 is white
		b.band.Rect = rect
	} else {
		b.band = canvas{image.NewPaletted(rect, b.palette)}
	}
	for _, e := range b.Edges {
		from, to := b.ends(e)
		b.band.line(from, to, e.Dashed)
	}
	for i, box := range b.Boxes {
		if r := b.Places[i]; r.Y < rect.Max.Y && r.Y+r.H > rect.Min.Y {
			b.band.box(box, r)
		}
	}
}

// A canvas is a band of the image, with the palette of the drawing.
type canvas struct{ *image.Paletted }

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
	first, end := c.within(from, to, steps)
	for i := first; i < end; i++ {
		if dashed && i%7 > 3 {
			continue
		}
		c.Set(from.X+(to.X-from.X)*i/steps, from.Y+(to.Y-from.Y)*i/steps, edgeColor())
	}
	c.fill(image.Rect(to.X-2, to.Y-2, to.X+3, to.Y+3), edgeColor())
}

// within returns the range of the steps of a line that lie in the rows of the band. The row
// never turns back from one step to the next.
func (c canvas) within(from, to point, steps int) (first, end int) {
	reaches := func(row int) int {
		return sort.Search(steps+1, func(i int) bool {
			y := from.Y + (to.Y-from.Y)*i/steps
			if from.Y <= to.Y {
				return y >= row
			}
			return y < row
		})
	}
	if from.Y <= to.Y {
		return reaches(c.Rect.Min.Y), reaches(c.Rect.Max.Y)
	}
	return reaches(c.Rect.Max.Y), reaches(c.Rect.Min.Y)
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

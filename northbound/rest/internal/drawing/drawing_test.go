package drawing

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

func random(t *rapid.T) Graph {
	n := rapid.IntRange(0, 30).Draw(t, "boxes")
	var g Graph
	for range n {
		g.Boxes = append(g.Boxes, Box{Label: rapid.StringN(0, 20, -1).Draw(t, "label"), Fill: "#aabbcc"})
	}
	if n == 0 {
		return g
	}
	for range rapid.IntRange(0, 60).Draw(t, "edges") {
		g.Edges = append(g.Edges, Edge{From: rapid.IntRange(0, n-1).Draw(t, "from"), To: rapid.IntRange(0, n-1).Draw(t, "to")})
	}
	return g
}

// Whatever the graph, all boxes are on the paper and none is on another.
func TestBoxesHavePlacesOfTheirOwn(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		d := Layout(random(t))
		for i, a := range d.Places {
			if a.X < 0 || a.Y < 0 || a.X+a.W > d.Width || a.Y+a.H > d.Height {
				t.Fatalf("%+v is not on the paper of %dx%d", a, d.Width, d.Height)
			}
			for _, b := range d.Places[:i] {
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Fatalf("%+v and %+v overlap", a, b)
				}
			}
		}
	})
}

// Without rings every box is right of all that it points to.
func TestEdgesPointLeft(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		g := random(t)
		for i, e := range g.Edges {
			g.Edges[i] = Edge{From: max(e.From, e.To), To: min(e.From, e.To)}
		}
		d := Layout(g)
		for _, e := range g.Edges {
			if from, to := d.Places[e.From], d.Places[e.To]; e.From != e.To && from.X < to.X+to.W {
				t.Fatalf("%+v is not right of %+v", from, to)
			}
		}
	})
}

// What no edge connects is one below the other.
func TestPartsAreApart(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		left, right := random(t), random(t)
		g := Graph{Boxes: append(slices.Clip(left.Boxes), right.Boxes...), Edges: left.Edges}
		n := len(left.Boxes)
		for _, e := range right.Edges {
			g.Edges = append(g.Edges, Edge{From: e.From + n, To: e.To + n})
		}
		d := Layout(g)
		for _, a := range d.Places[:n] {
			for _, b := range d.Places[n:] {
				if a.Y >= b.Y {
					t.Fatalf("%+v is not above %+v", a, b)
				}
			}
		}
	})
}

// All formats are well formed, whatever the labels.
func TestFormats(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		d := Layout(random(t))
		var svg, dot, pixels bytes.Buffer
		if err := errors.Join(d.SVG(&svg), d.DOT(&dot), d.PNG(&pixels)); err != nil {
			t.Fatal(err)
		}
		x := xml.NewDecoder(&svg)
		for {
			if _, err := x.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(dot.String(), "\n"); got < 4+len(d.Boxes)+len(d.Edges) {
			t.Fatalf("DOT has only %d lines", got)
		}
		if _, err := png.Decode(&pixels); err != nil {
			t.Fatal(err)
		}
	})
}

// A bitmap that is drawn in bands of a few rows has the same pixels as one that is drawn at once.
func TestBands(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		g := random(t)
		for i := range g.Edges {
			g.Edges[i].Dashed = i%2 == 0
		}
		d := Layout(g)
		whole, banded := d.bitmap(maxPixels), d.bitmap(rapid.IntRange(1, 10_000).Draw(t, "bytes"))
		for y := range whole.bounds.Max.Y {
			for x := range whole.bounds.Max.X {
				if a, b := whole.ColorIndexAt(x, y), banded.ColorIndexAt(x, y); a != b {
					t.Fatalf("the pixel at %d, %d has colour %d, and %d in bands of %d rows", x, y, a, b, banded.rows)
				}
			}
		}
	})
}

// A large picture takes no more memory than a band of it and what the encoder needs.
func TestLargePictureIsDrawnInBands(t *testing.T) {
	d := &Drawing{Width: 1000, Height: maxPixels / 1000}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := d.PNG(io.Discard); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8*bandBytes {
		t.Errorf("a picture of %d MB allocates %d MB, want at most %d", maxPixels>>20, got>>20, 8*bandBytes>>20)
	}
}

func TestTooLargeForPixels(t *testing.T) {
	d := &Drawing{Width: 100_000, Height: 100_000}
	if err := d.PNG(io.Discard); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

// BenchmarkLayout lays out 10 k interfaces with 9 routes each.
func BenchmarkLayout(b *testing.B) {
	g := Graph{Boxes: make([]Box, 100_000)}
	for i := 10_000; i < 100_000; i++ {
		g.Edges = append(g.Edges, Edge{From: i, To: i % 10_000})
	}
	for b.Loop() {
		Layout(g)
	}
}

// Package drawing draws directed graphs: in columns from left to right, so that each
// box is right of what its edges point to.
//
//	d := drawing.Layout(drawing.Graph{Boxes: boxes, Edges: edges})
//	err := d.SVG(w)  // or PNG; Graph.DOT for other programs
//
// It is our own since no library fits that lays out in columns: goccy/go-graphviz
// compiles WebAssembly in its init, which costs each start of the agent 0.9 s and
// 48 MB, d2 brings dagre with a JavaScript interpreter, nikolaydubina/go-graph-layout
// is unfinished, as it says itself, and gonum's layouts have no columns.
//
// The cost is that of sorting, so graphs of any size can be drawn, though not looked
// at. Nothing is kept between calls, and the same graph always gives the same
// picture. Tests: golden pictures, and property tests: no two
// boxes overlap, every box is right of what it points to.
package drawing

// A Graph is what is drawn.
type Graph struct {
	Boxes []Box
	Edges []Edge
}

// A Box is a node.
type Box struct {
	Label  string // one line
	Tip    string // shown where the mouse is
	Fill   string // "#rrggbb"
	Dashed bool
	Bold   bool
}

// An Edge is an arrow from one box to another, by their indexes.
type Edge struct {
	From, To int
	Dashed   bool
}

// A Drawing is a Graph whose boxes have places, in pixels.
type Drawing struct {
	Graph
	Places        []Rect // of Boxes
	Width, Height int
}

// A Rect is a place.
type Rect struct{ X, Y, W, H int }

// Measures, in pixels. The letters are those of a 7x13 font, in all formats.
const (
	letter   = 7
	boxH     = 22
	padding  = 8
	rowGap   = 8
	columnAt = 60 // between columns
	margin   = 10
)

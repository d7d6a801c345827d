// Package drawing draws directed graphs in columns from left to right. Each box is
// to the right of the boxes that its edges point to.
//
//	d := drawing.Layout(drawing.Graph{Boxes: boxes, Edges: edges})
//	err := d.SVG(w)  // or PNG; Graph.DOT for other programs
//
// No suitable library exists: goccy/go-graphviz compiles WebAssembly in its init,
// which costs each start of the agent 0.9 s and 48 MB. d2 contains dagre and a
// JavaScript interpreter. nikolaydubina/go-graph-layout calls itself unfinished, and
// gonum's layouts have no columns.
//
// The cost is O(n log n), so graphs of any size can be drawn. The package keeps no
// state, and equal graphs give equal pictures. Tests: golden pictures, and property
// tests: no two boxes overlap, and edges point to the left.
package drawing

// A Graph is the input of a layout.
type Graph struct {
	Boxes []Box
	Edges []Edge
}

// A Box is a node.
type Box struct {
	Label string // one line
	Tip   string // text that appears under the mouse pointer
	Fill  string // "#rrggbb"
	// Dashed and Bold concern the border. The caller gives them their meaning.
	Dashed bool
	Bold   bool
}

// An Edge is an arrow from one box to another, by their indexes.
type Edge struct {
	From, To int
	Dashed   bool
}

// A Drawing is a Graph with a position for each box, in pixels.
type Drawing struct {
	Graph
	Places        []Rect // positions of Boxes, by the same index
	Width, Height int
}

// A Rect is a position and size.
type Rect struct{ X, Y, W, H int }

// Sizes in pixels. Letters have the size of a 7x13 font in all formats, so that the
// formats agree.
const (
	letter   = 7
	boxH     = 22
	padding  = 8
	rowGap   = 8
	columnAt = 60 // gap between columns
	margin   = 10
)

package main

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of a plot of bars, in points.
const (
	width     = 720
	textLine  = 17 // the name of a row
	lane      = 12 // one figure
	rowGap    = 8
	headRoom  = 34 // the title
	axisRoom  = 26
	legendRow = 15
	otherFont = 1.15 // a viewer without our font may show a wider one
)

// barPlot draws rows from top to bottom: a line of text, and a lane for each column.
type barPlot struct {
	rows    []row
	columns []string
}

// height is that of one row.
func (b *barPlot) height() vg.Length { return vg.Length(textLine + lane*len(b.columns) + rowGap) }

// Plot implements plot.Plotter.
func (b *barPlot) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for i, r := range b.rows {
		top := c.Max.Y - vg.Length(i)*b.height()
		for _, tick := range decades(p.X.Min, p.X.Max) {
			c.StrokeLine2(grid.line(0.5), x(tick.Value), top-textLine, x(tick.Value), top-b.height())
		}
		c.StrokeLine2(limit.line(1.5, 5, 3), x(1), top-textLine, x(1), top-b.height())
		c.FillText(ink.text(10), vg.Point{X: c.Min.X, Y: top - textLine/2 - 2}, r.what+" (bar: "+r.bar+")")
		for n, point := range r.points {
			if point != nil {
				b.point(c, x, top-textLine-vg.Length(n)*lane-lane/2, point, series[n%len(series)])
			}
		}
	}
}

// point draws one figure: its range, and its text where there is room.
func (b *barPlot) point(c draw.Canvas, x func(float64) vg.Length, y vg.Length, p *point, s shade) {
	from, to := x(p.low), x(p.high)
	c.StrokeLine2(s.line(5), from-2.5, y, to+2.5, y)
	label := faint.text(8.5)
	room := label.Width(p.text) * otherFont
	at := vg.Point{X: to + 7, Y: y}
	crosses := at.X < x(1) && at.X+room > x(1)
	if left := from - 7 - room; at.X+room > c.Max.X || crosses && left > c.Min.X {
		at.X = left
	}
	// The dashed line would make a text on it hard to read.
	c.FillPolygon(ground, []vg.Point{{X: at.X - 1, Y: y - 5}, {X: at.X + room, Y: y - 5}, {X: at.X + room, Y: y + 5}, {X: at.X - 1, Y: y + 5}})
	c.FillText(label, at, p.text)
}

// decades are the ticks of a logarithmic axis.
func decades(from, to float64) (out plot.ConstantTicks) {
	for e := math.Ceil(math.Log10(from) - 1e-9); math.Pow(10, e) <= to*1.0001; e++ {
		v := math.Pow(10, e)
		out = append(out, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
	}
	return out
}

// drawBars draws rows relative to their bars.
func drawBars(title string, columns []string, rows []row) ([]byte, error) {
	if len(rows) == 0 {
		return nil, errNoFigure
	}
	b := &barPlot{rows, columns}
	p := newPlot(title)
	low, high := 1., 1.
	for _, r := range rows {
		for _, point := range r.points {
			if point != nil {
				low, high = min(low, point.low), max(high, point.high)
			}
		}
	}
	p.X.Scale = plot.LogScale{}
	p.X.Min, p.X.Max = math.Pow(10, math.Floor(math.Log10(max(low, 1e-4))*2)/2), math.Pow(10, math.Ceil(math.Log10(high*1.6)*2)/2)
	for _, r := range rows {
		for _, point := range r.points {
			if point != nil {
				point.low, point.high = max(point.low, p.X.Min), max(point.high, p.X.Min)
			}
		}
	}
	p.X.Tick.Marker = decades(p.X.Min, p.X.Max)
	p.HideY()
	p.Add(b)
	canvas := vgsvg.New(width, headRoom+vg.Length(len(rows))*b.height()+axisRoom+2*legendRow)
	whole := draw.New(canvas)
	whole.SetColor(ground)
	whole.Fill(whole.Rectangle.Path())
	legend(whole, columns)
	p.Y.Min, p.Y.Max = 0, 1
	p.Draw(draw.Crop(whole, 14, -14, 2*legendRow, -4))
	return svgOf(canvas)
}

// legend explains the axis and names the colours at the bottom.
func legend(c draw.Canvas, columns []string) {
	at := vg.Point{X: c.Min.X + 16, Y: c.Min.Y + legendRow + 7}
	c.FillText(faint.text(9), at, "multiple of the bar, which is the dashed line at 1: figures to its left meet the bar")
	at.Y -= legendRow
	for i, name := range columns {
		style := ink.text(9)
		c.StrokeLine2(series[i%len(series)].line(5), at.X, at.Y, at.X+14, at.Y)
		c.FillText(style, vg.Point{X: at.X + 19, Y: at.Y}, name)
		at.X += 19 + style.Width(name)*otherFont + 12
	}
}

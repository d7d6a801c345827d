package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// errNoSamples says that a file of samples has not the form that make soak-agent writes.
var errNoSamples = errors.New("expected lines of seconds, life, memory_mb, goroutines, descriptors, cuts, vpp_kills")

// soak draws the samples of make soak-agent, each process of the agent in a line of its own.
func soak(root string) ([]byte, error) {
	f, err := os.Open(filepath.Join(root, "docs", "plots", "soak-agent.csv"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) < 2 || len(lines[0]) != 7 {
		return nil, errNoSamples
	}
	last := lines[len(lines)-1]
	seconds, err := strconv.Atoi(last[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSamples, err)
	}
	title := fmt.Sprintf("One agent for %v: %s cuts of its line to the store, %s kills of VPP; each line is a process of the agent", time.Duration(seconds)*time.Second, last[5], last[6])
	var panels [][]*plot.Plot
	for i, what := range []string{"resident memory, MB", "goroutines", "descriptors"} {
		p, err := panel(lines[1:], 2+i, what)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			p.Title.Text = title
		}
		panels = append(panels, []*plot.Plot{p})
	}
	panels[2][0].X.Label.Text = "minutes"
	canvas := vgsvg.New(width, 480)
	whole := draw.New(canvas)
	whole.SetColor(ground)
	whole.Fill(whole.Rectangle.Path())
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadTop: 6, PadBottom: 6, PadLeft: 8, PadRight: 14, PadY: 8}
	for i, c := range plot.Align(panels, tiles, whole) {
		panels[i][0].Draw(c[0])
	}
	return svgOf(canvas)
}

// panel draws one column of the samples over time.
func panel(lines [][]string, column int, what string) (*plot.Plot, error) {
	p := newPlot("")
	p.Y.Label.Text = what
	rules := plotter.NewGrid()
	rules.Vertical, rules.Horizontal = grid.line(0.5), grid.line(0.5)
	p.Add(rules)
	lives, order := map[string]plotter.XYs{}, []string{}
	for _, line := range lines {
		seconds, err := strconv.ParseFloat(line[0], 64)
		figure, wrong := strconv.ParseFloat(line[column], 64)
		if err := errors.Join(err, wrong); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoSamples, err)
		}
		if lives[line[1]] == nil {
			order = append(order, line[1])
		}
		lives[line[1]] = append(lives[line[1]], plotter.XY{X: seconds / 60, Y: figure})
	}
	for i, life := range order {
		l, err := plotter.NewLine(lives[life])
		if err != nil {
			return nil, err
		}
		l.LineStyle = series[i%len(series)].line(vg.Length(1.2))
		p.Add(l)
	}
	p.Y.Min = 0
	p.Y.Max *= 1.05
	return p, nil
}

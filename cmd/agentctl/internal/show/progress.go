package show

import (
	"fmt"
	"io"
	"strings"
)

// barWidth is the width of a full bar, in columns.
const barWidth = 30

// A Progress tells how far a long command has come. On a terminal it is a bar that is drawn in
// place. Elsewhere, and where TERM is dumb, it is one line for each tenth of the work, so that a log stays short.
//
//	p := show.NewProgress(session.Err, session.Env, "reading models", len(all))
//	defer p.End()
//	for ... {
//		p.Step()
//	}
//
// It belongs on standard error: standard output has the result.
type Progress struct {
	out   io.Writer
	label string
	live  bool
	// Steps of the work, and those that are done.
	total, done int
}

// NewProgress returns the progress of work with this many steps. Nothing is printed before the
// first one. env looks up environment variables.
func NewProgress(out io.Writer, env func(string) (string, bool), label string, total int) *Progress {
	return &Progress{out: out, label: Line(label), live: Draws(out, env), total: total}
}

// Step counts one more step. An error of the output is ignored: it must not end the work.
func (p *Progress) Step() {
	p.At(p.done+1, p.total)
}

// At sets the steps that are done and those of the work, which may change. It prints nothing while
// there is no work.
func (p *Progress) At(done, total int) {
	before := p.tenths()
	p.total, p.done = total, min(done, total)
	switch {
	case total == 0:
	case p.live:
		columns, _ := Size(p.out)
		// A line of the full width would wrap, and could not be drawn over.
		_, _ = io.WriteString(p.out, "\r"+Shorten(p.bar(), columns-1)+"\x1b[K")
	case p.tenths() > before:
		_, _ = fmt.Fprintf(p.out, "%s: %d of %d\n", p.label, p.done, p.total)
	}
}

// End removes the bar. Lines stay.
func (p *Progress) End() {
	if p.live && p.total > 0 {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}

// tenths returns the part of the work that is done, in tenths.
func (p *Progress) tenths() int {
	if p.total == 0 {
		return 0
	}
	return 10 * p.done / p.total
}

// bar returns the line of a terminal.
func (p *Progress) bar() string {
	full := 0
	if p.total > 0 {
		full = barWidth * p.done / p.total
	}
	return fmt.Sprintf("%s [%s%s] %d of %d", p.label, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), p.done, p.total)
}

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/scheduler"
)

// An album has a picture of the scheduler's graph after each step of a scenario. Its methods do
// nothing if it is nil.
type album struct {
	draw     http.Handler // draws the graph, as the agent does for GET /scheduler/graph
	pictures []picture
}

// A picture is the graph after a step.
type picture struct {
	title         string
	svg           string // a whole document
	width, height int    // of svg, in pixels
}

// newAlbum returns an album of the graph of s.
func newAlbum(s *scheduler.Scheduler) *album {
	return &album{draw: rest.Handler(rest.Options{Scheduler: s})}
}

// add draws the graph as it is now.
func (a *album) add(title string) error {
	if a == nil {
		return nil
	}
	request, err := http.NewRequest(http.MethodGet, "/scheduler/graph", http.NoBody)
	if err != nil {
		return err
	}
	var answer sheet
	a.draw.ServeHTTP(&answer, request)
	p := picture{title: title, svg: answer.body.String()}
	if _, err := fmt.Sscanf(p.svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"`, &p.width, &p.height); err != nil {
		return fmt.Errorf("the picture begins with %.80q: %w", p.svg, err)
	}
	a.pictures = append(a.pictures, p)
	return nil
}

// Sizes in pixels.
const (
	captionHeight = 28
	captionBase   = 20 // from the top of a caption to the line on which its letters stand
	captionLetter = 8  // the widest usual one
	captionMargin = 10
)

// save writes the pictures, one below the other, into the file NAME.svg of a folder.
func (a *album) save(folder, name string) error {
	if a == nil {
		return nil
	}
	width, height := 0, 0
	for _, p := range a.pictures {
		width, height = max(width, p.width, captionMargin+captionLetter*len(p.title)), height+captionHeight+p.height
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, width, height, width, height)
	y := 0
	for i, p := range a.pictures {
		fmt.Fprintf(&out, `<text x="%d" y="%d">%d. `, captionMargin, y+captionBase, i+1)
		_ = xml.EscapeText(&out, []byte(p.title)) // a strings.Builder never fails
		fmt.Fprintf(&out, "</text>\n<g transform=\"translate(0 %d)\">\n%s</g>\n", y+captionHeight, p.svg)
		y += captionHeight + p.height
	}
	out.WriteString("</svg>\n")
	return os.WriteFile(filepath.Join(folder, name+".svg"), []byte(out.String()), 0o644)
}

// A sheet takes an answer of HTTP.
type sheet struct {
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (s *sheet) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}

// Write implements http.ResponseWriter.
func (s *sheet) Write(text []byte) (int, error) { return s.body.Write(text) }

// WriteHeader implements http.ResponseWriter. The text of an error is no picture, which add reports.
func (s *sheet) WriteHeader(int) {}

package rest

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/drawing"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/nodes"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// graph answers a picture of all values or, with txn, of the values that a
// transaction changed and their neighbours, as of its end.
func (h *handler) graph(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	format, err := q.Choice("format", "svg", "png", "dot", "raw")
	if err != nil {
		return err
	}
	seq, one, err := q.Number("txn")
	if err != nil {
		return err
	}
	if !one {
		return draw(w, drawing.Values(nodes.Of(h.sched, nodes.All).At(time.Now()), nil), format)
	}
	r, err := h.record(seq)
	if err != nil {
		return err
	}
	near, changed := nodes.Of(h.sched, nodes.All).Changed(r)
	return draw(w, drawing.Values(slices.Values(near), changed), format)
}

// draw writes the picture. It is complete in memory first, because an error must still
// become the answer. A picture is a few hundred bytes per value, so it fits into memory;
// the number of requests that draw at once is bounded.
func draw(w http.ResponseWriter, g drawing.Graph, format string) error {
	var out bytes.Buffer
	var err error
	contentType := "text/vnd.graphviz; charset=UTF-8"
	switch format {
	case "svg":
		contentType = "image/svg+xml"
		err = drawing.Layout(g).SVG(&out)
	case "png":
		contentType = "image/png"
		err = drawing.Layout(g).PNG(&out)
	default:
		err = g.DOT(&out)
	}
	if err != nil {
		return err
	}
	reply.Page(w, contentType)
	_, _ = io.Copy(w, &out) // an error means that the client has disconnected
	return nil
}

package vpp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// ErrDeadlyRead is the error of a list that VPP does not survive. Its kind stays unknown, and nothing of it is changed.
var ErrDeadlyRead = errors.New("it is not asked for that again until the agent starts again")

// A readGuard is a conn.API that prevents that one list crashes VPP again and again. A list that VPP was making when it
// died three times in a row is not asked for any more, so that all other kinds can be read back.
//
// VPP carries out one request after the other, so the oldest one without an answer is the one that it died of.
type readGuard struct {
	conn.API

	mu      sync.Mutex // guards the fields below
	asked   []*asked   // the requests without an answer, the oldest first
	last    int        // the number of the newest request
	settled int        // the newest request at VPP's last death; the answers of earlier ones say nothing new
	deaths  map[string]int
	blamed  string // the list that counts as the reason of the last death; empty: none
}

// An asked request has no answer yet.
type asked struct {
	number int
	list   string // the name of its message; empty: the request lists nothing
}

// newReadGuard returns a guard of the requests to a.
func newReadGuard(a conn.API) *readGuard { return &readGuard{API: a, deaths: map[string]int{}} }

// Call implements conn.API.
func (g *readGuard) Call(ctx context.Context, request, reply api.Message) error {
	return g.ask("", func() error { return g.API.Call(ctx, request, reply) })
}

// Details implements conn.API.
func (g *readGuard) Details(ctx context.Context, request, detail api.Message, take conn.Take) error {
	return g.ask(request.GetMessageName(), func() error { return g.API.Details(ctx, request, detail, take) })
}

// Batch implements conn.API. Its lists are of single interfaces or tables; none of them is known to crash VPP.
func (g *readGuard) Batch(ctx context.Context, steps ...*conn.Step) error {
	return g.ask("", func() error { return g.API.Batch(ctx, steps...) })
}

// ask sends a request, unless VPP does not survive it.
func (g *readGuard) ask(list string, send func() error) error {
	one, err := g.begin(list)
	if err != nil {
		return err
	}
	err = send()
	g.end(one, err)
	return err
}

// begin notes a request, or refuses it.
func (g *readGuard) begin(list string) (*asked, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if deaths := g.deaths[list]; deaths >= mostDeaths {
		return nil, fmt.Errorf("VPP died %d times while it answered %s: %w", deaths, list, ErrDeadlyRead)
	}
	g.last++
	one := &asked{g.last, list}
	g.asked = append(g.asked, one)
	return one, nil
}

// end notes how a request ended.
func (g *readGuard) end(one *asked, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	oldest := g.asked[0]
	g.asked = slices.DeleteFunc(g.asked, func(a *asked) bool { return a == one })
	switch {
	case err == nil:
		delete(g.deaths, one.list)
	case errors.Is(err, conn.ErrCut) && one.number > g.settled:
		g.settled, g.blamed = g.last, oldest.list
		if oldest.list != "" {
			g.deaths[oldest.list]++
		}
	}
}

// reborn is called when VPP is connected again. same says that it is the same process as before, which has not died.
func (g *readGuard) reborn(same bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if same && g.deaths[g.blamed] > 0 {
		g.deaths[g.blamed]--
	}
	g.blamed = ""
}

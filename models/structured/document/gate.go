package document

import "context"

// A Gate lets one text of many nodes be read at a time: the nodes of the largest take a hundred
// megabytes. All that read texts of others share one. A nil Gate is open.
type Gate struct{ one chan struct{} }

// NewGate makes a Gate that nobody has entered.
func NewGate() *Gate { return &Gate{make(chan struct{}, 1)} }

// fewNodes is how many nodes a text may make without entering a Gate.
const fewNodes = mostNodes / 10

// Enter waits until data may be read, or ctx ends, whose error it returns then. The nodes
// are to be dropped before leave is called.
func (g *Gate) Enter(ctx context.Context, data []byte) (leave func(), err error) {
	if g == nil || len(data) < fewNodes/2 || Nodes(data) < fewNodes {
		return func() {}, nil
	}
	select {
	case g.one <- struct{}{}:
		return func() { <-g.one }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

package document

import (
	"context"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models"
)

const (
	// mostDepth is how deep a document may be nested; no value needs a tenth of it.
	mostDepth = 200
	// mostAliased is how many bytes aliases and merge keys may add to a document: enough
	// for any honest use, and an end to documents that grow when they are read.
	mostAliased = models.MaxSize
	// mostNodes is how many nodes a text may make. One takes about 200 bytes, and may stand in
	// two bytes of text.
	mostNodes = 600_000
	// checkEvery is how many nodes are written between two looks at the context.
	checkEvery = 1024
)

// A Budget bounds the work of one text: the bytes that all aliases and merge keys in it add
// together, and the time until its context ends. It belongs to one goroutine.
type Budget struct {
	ctx     context.Context //nolint:containedctx // a Budget is as short-lived as an argument
	aliased int             // bytes that aliases have added
	steps   int
}

// NewBudget makes the budget of one text. What it is used for fails with ctx's error when ctx ends.
func NewBudget(ctx context.Context) *Budget { return &Budget{ctx: ctx} }

// spend takes bytes that an alias adds.
func (b *Budget) spend(at *yaml.Node, size int) error {
	if b.aliased += size; b.aliased > mostAliased {
		return At(at, "aliases make this document grow by more than %d bytes", mostAliased)
	}
	return nil
}

// step is called for each node.
func (b *Budget) step() error {
	if b.steps++; b.steps%checkEvery != 0 {
		return nil
	}
	return b.ctx.Err()
}

func tooDeep(n *yaml.Node) error { return At(n, "nested deeper than %d levels", mostDepth) }

// Nodes returns how many nodes a text makes, or a somewhat larger number. To read a text takes about
// 200 bytes of memory for each. It counts the signs that begin nodes; in quoted text they count too.
func Nodes(data []byte) int {
	n := 3 // a mapping of one pair may have no sign but a colon
	for i, c := range data {
		switch c {
		case ',': // in braces, a name without a value is two nodes
			n += 2
		case '[', '{', '\n':
			n++
		case ':', '-', '?':
			if i+1 == len(data) || isBorder(data[i+1]) || i > 0 && isBorder(data[i-1]) {
				n++
			}
		}
	}
	return n
}

// isBorder tells whether a byte may stand beside a sign.
func isBorder(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '"' || c == '\''
}

// tooMany returns an error if a text makes more nodes than can be read.
func tooMany(data []byte) error {
	if len(data) < mostNodes/2 {
		return nil
	}
	if n := Nodes(data); n > mostNodes {
		return &Error{Line: 1, Msg: fmt.Sprintf("too many values in one text: about %d; the maximum is %d: split it", n, mostNodes)}
	}
	return nil
}

package document

import (
	"context"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models"
)

const (
	// mostDepth is the maximum nesting; real values need less than a tenth of it.
	mostDepth = 200
	// mostAliased is the number of bytes that aliases and merge keys may add to a
	// document. It is ample for real use and stops documents that grow
	// exponentially.
	mostAliased = models.MaxSize
	// MostNodes is the maximum number of nodes of a text: names, values, lists. A node takes about 200
	// bytes of memory, and as little as two bytes of text.
	MostNodes = 600_000
	// checkEvery is the number of nodes between two checks of the context.
	checkEvery = 1024
)

// A Budget bounds the work for one text: the bytes that its aliases and merge keys
// add in total, and the time until a context ends. It is not safe for concurrent
// use.
type Budget struct {
	ctx     context.Context //nolint:containedctx // a Budget lives no longer than the call
	aliased int             // bytes that aliases have added
	steps   int
}

// NewBudget returns a budget for one text. After ctx ends, its methods return the
// error of ctx.
func NewBudget(ctx context.Context) *Budget { return &Budget{ctx: ctx} }

// spend uses bytes that an alias adds.
func (b *Budget) spend(at *yaml.Node, size int) error {
	if b.aliased += size; b.aliased > mostAliased {
		return At(at, "aliases make this document grow by more than %d bytes", mostAliased)
	}
	return nil
}

// step counts a node and checks the context from time to time.
func (b *Budget) step() error {
	if b.steps++; b.steps%checkEvery != 0 {
		return nil
	}
	return b.ctx.Err()
}

// tooDeep returns the error for excessive nesting.
func tooDeep(n *yaml.Node) error { return At(n, "nested deeper than %d levels", mostDepth) }

// Nodes returns an upper estimate of the number of nodes in a text. Reading takes
// about 200 bytes of memory per node. It counts the characters that start nodes,
// also within quotes.
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

// bytesOfNode is about the memory of a node with its text, in bytes.
const bytesOfNode = 200

// Cost returns an upper estimate of the memory, in bytes, that the nodes of a text take.
// It is a hundred times the size of the text at most, and more than MostNodes never.
func Cost(data []byte) int64 { return int64(min(Nodes(data), MostNodes)) * bytesOfNode }

// isBorder reports whether a byte separates tokens.
func isBorder(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '"' || c == '\''
}

// tooMany returns an error if a text has more nodes than MostNodes.
func tooMany(data []byte) error {
	if len(data) < MostNodes/2 {
		return nil
	}
	if n := Nodes(data); n > MostNodes {
		return &Error{Line: 1, Msg: fmt.Sprintf("too many values in one text: about %d; the maximum is %d: split it", n, MostNodes)}
	}
	return nil
}

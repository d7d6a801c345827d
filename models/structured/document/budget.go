package document

import "go.yaml.in/yaml/v3"

const (
	// mostDepth is how deep a document may be nested; no value needs a tenth of it.
	mostDepth = 200
	// mostAliased is how many nodes aliases and merge keys may add to a value: enough
	// for any honest use, and an end to documents that grow when they are read.
	mostAliased = 100_000
)

// A budget counts what aliases and merge keys have added.
type budget int

func (b *budget) spend(at *yaml.Node, nodes int) error {
	*b += budget(nodes)
	if *b > mostAliased {
		return At(at, "aliases make this value grow beyond %d nodes", mostAliased)
	}
	return nil
}

func tooDeep(n *yaml.Node) error { return At(n, "nested deeper than %d levels", mostDepth) }

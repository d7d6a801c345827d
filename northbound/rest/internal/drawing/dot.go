package drawing

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// DOT writes the graph in the language of Graphviz, for tools with better layouts.
func (g Graph) DOT(w io.Writer) error {
	out := bufio.NewWriter(w)
	// These characters are special within a quoted string.
	inside := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	quoted := func(s string) string { return `"` + inside.Replace(s) + `"` }
	fmt.Fprint(out, "digraph G {\n  rankdir=RL;\n  node [shape=box, style=\"rounded,filled\", fontname=monospace];\n")
	for i, b := range g.Boxes {
		style, width := "rounded,filled", 1
		if b.Dashed {
			style += ",dashed"
		}
		if b.Bold {
			width = 3
		}
		fmt.Fprintf(out, "  n%d [label=%s, tooltip=%s, fillcolor=%q, style=%q, penwidth=%d];\n", i, quoted(b.Label), quoted(b.Tip), b.Fill, style, width)
	}
	for _, e := range g.Edges {
		style := ""
		if e.Dashed {
			style = " [style=dashed]"
		}
		fmt.Fprintf(out, "  n%d -> n%d%s;\n", e.From, e.To, style)
	}
	fmt.Fprint(out, "}\n")
	return out.Flush()
}

package document_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// attacks are texts that once took gigabytes. Each is as large as name says.
func attacks() map[string]string {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	merges := "a: &a {k: 1}\n"
	for _, c := range "bcdefgh" {
		p := "*" + string(c-1)
		ten := strings.Repeat(p+",", 9) + p
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, ten)
		merges += fmt.Sprintf("%c: &%c {<<: [%s]}\n", c, c, ten)
	}
	long := strings.Repeat("x", 100)
	return map[string]string{
		"one list in each of 8000 values, 460 kB": "big: &big [" + strings.Repeat(long+",", 900) + "y]\nall:\n" + strings.Repeat("  - {name: value, addresses: *big}\n", 8000),
		"one long text 10000 times":               "big: &big " + strings.Repeat(long, 1000) + "\nall: [" + strings.Repeat("*big,", 10_000) + "]\n",
		"aliases of aliases":                      bomb,
		"merges of merges":                        merges,
		"ones, 16 MB":                             "[" + strings.Repeat("1,", 8_000_000) + "1]",
		"empty lists, 16 MB":                      "[" + strings.Repeat("[],", 5_000_000) + "1]",
		"names without values, 16 MB":             "{" + strings.Repeat("a,", 8_000_000) + "a}",
		"lines, 16 MB":                            strings.Repeat("-\n", 8_000_000),
		"dashes in a line, 8 MB":                  strings.Repeat("- ", 4_000_000),
		"question marks, 8 MB":                    strings.Repeat("?\n", 4_000_000),
	}
}

// TestMemoryOfAttacks reads texts that are made to grow, as YAML and as JSON, and writes each
// value in them. What is allocated on the way stays below a few times the size of the text and the
// budget.
func TestMemoryOfAttacks(t *testing.T) {
	for name, attack := range attacks() {
		for _, format := range []document.Format{document.YAML, document.JSONText} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := writeAll(t.Context(), attack, format)
			runtime.ReadMemStats(&after)
			most := uint64(4*len(attack) + 16*models.MaxSize)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > most {
				t.Errorf("%s, format %d: %d MB were allocated, want at most %d MB", name, format, taken>>20, most>>20)
			}
			if _, ok := errors.AsType[*document.Error](err); !ok {
				t.Errorf("%s, format %d: it was read: %v", name, format, err)
			}
		}
	}
}

// writeAll writes the fields of each document, and the elements of lists in them, as values of
// their own, which share one budget. It returns the first fault.
func writeAll(ctx context.Context, text string, format document.Format) (first error) {
	docs, err := document.ReadContext(ctx, []byte(text), format)
	if err != nil {
		return err
	}
	budget := document.NewBudget(ctx)
	for _, doc := range docs {
		fields, err := budget.Fields(doc)
		if err != nil {
			return err
		}
		for _, f := range fields {
			values := document.Resolve(f.Value).Content
			for _, n := range append(slices.Clip(values), f.Value) {
				if _, _, err := budget.JSONOf(n, nil); err != nil && first == nil {
					first = err
				}
			}
		}
	}
	return first
}

// TestMostNodes reads a text of nearly as many nodes as there may be.
func TestMostNodes(t *testing.T) {
	const routes = 60_000
	line := `{"dst_network": "10.1.2.0/24", "outgoing_interface": "veth1"},` + "\n"
	text := `{"routes": [` + strings.Repeat(line, routes) + `null]}`
	for _, format := range []document.Format{document.YAML, document.JSONText} {
		docs, err := document.Read([]byte(text), format)
		if err != nil || len(docs) != 1 {
			t.Errorf("format %d: %d documents, %v", format, len(docs), err)
		}
	}
	if n := document.Nodes([]byte(text)); n < 5*routes || n > 9*routes {
		t.Errorf("it is taken for %d nodes, and has %d", n, 5*routes)
	}
}

func TestValuesEndAtTheLargestSize(t *testing.T) {
	text := "a: [" + strings.Repeat(strings.Repeat("x", 1000)+",", 5000) + "y]"
	err := writeAll(t.Context(), text, document.YAML)
	if err == nil || !strings.Contains(err.Error(), "the value is too large; the maximum is 4194304 bytes") {
		t.Errorf("it says %v", err)
	}
}

// TestReadingEndsWithItsContext has a context that ends before, or while, a text is read.
func TestReadingEndsWithItsContext(t *testing.T) {
	text := "[" + strings.Repeat("{\"a\": 1}, ", 20_000) + "1]"
	ended, cancel := context.WithCancel(t.Context())
	docs, err := document.Read([]byte(text), document.JSONText)
	if err != nil {
		t.Fatal(err)
	}
	budget := document.NewBudget(ended)
	cancel()
	if _, _, err := budget.JSONOf(docs[0], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("writing: %v", err)
	}
	for _, format := range []document.Format{document.YAML, document.JSONText} {
		if _, err := document.ReadContext(ended, []byte(text), format); !errors.Is(err, context.Canceled) {
			t.Errorf("format %d: %v", format, err)
		}
	}
}

// FuzzNodes: a text never makes more nodes than Nodes says.
func FuzzNodes(f *testing.F) {
	for _, attack := range attacks() {
		f.Add([]byte(attack[:min(len(attack), 300)]))
	}
	for _, text := range []string{"a: 1\nb:\n- x\n-\n", "[a: 1, \"b\":2]", "{a, b: 'c', ? d}", "? a\n? b\n", "a: |\n  x\n", "- - - x\n", "--- a\n--- b\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []document.Format{document.YAML, document.JSONText} {
			docs, err := document.Read(data, format)
			if err != nil {
				continue
			}
			count := 0
			for _, doc := range docs {
				count += nodesBelow(doc)
			}
			if n := document.Nodes(data); n < count {
				t.Fatalf("%q makes %d nodes, Nodes says %d", data, count, n)
			}
		}
	})
}

func nodesBelow(n *yaml.Node) int {
	count := 1
	for _, one := range n.Content {
		count += nodesBelow(one)
	}
	return count
}

package faults

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/faults/stores"
)

// Results are the tested cells of the matrix. Any goroutine may add some.
type Results struct {
	mu    sync.Mutex // guards cells
	cells map[[2]string]string
}

// Add records the time that a store needed after a fault; failed: it did not recover.
func (r *Results) Add(store, fault string, took time.Duration, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cells == nil {
		r.cells = map[[2]string]string{}
	}
	text := readable(took)
	if failed {
		text = "**lost**"
	}
	r.cells[[2]string{store, fault}] = text
}

// readable returns a time in a form for people.
func readable(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "at once"
	case d < 995*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// Markdown returns a table of faults by stores. A cell that does not exist is "–", and one
// that was not tested is empty.
func (r *Results) Markdown(kinds []stores.Kind, faults []Fault) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	b.WriteString("| |")
	for _, k := range kinds {
		fmt.Fprintf(&b, " %s |", k.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(kinds)) + "\n")
	for _, f := range faults {
		fmt.Fprintf(&b, "| %s |", f.Name)
		for _, k := range kinds {
			cell := r.cells[[2]string{k.Name, f.Name}]
			if !f.applies(k) {
				cell = "–"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The table in a document is between these lines.
const (
	// Text outside of these lines is written by people and never changed.
	tableBegins = "<!-- written by make faults -->\n"
	tableEnds   = "<!-- end -->\n"
)

// Put writes the table into a document that has these lines.
func Put(path, table string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s: no place for the table: expected the lines %q and %q", path, tableBegins, tableEnds)
	}
	return os.WriteFile(path, []byte(before+tableBegins+table+tableEnds+after), 0o644)
}

package testkit

import (
	"strings"
	"sync"
)

// A Tail is a writer that keeps the last writes, to explain a failure. Each write of a logger
// is a line. Any goroutine may call the methods.
type Tail struct {
	most int

	mu    sync.Mutex // guards lines
	lines []string
}

// NewTail returns a Tail of the last most writes.
func NewTail(most int) *Tail { return &Tail{most: most} }

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, string(p))
	if len(t.lines) > t.most {
		t.lines = append([]string{}, t.lines[1:]...)
	}
	return len(p), nil
}

// String returns the kept text.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}

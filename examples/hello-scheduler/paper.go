package main

import (
	"fmt"
	"io"
	"sync"
)

// paper is a system that prints its operations and keeps nothing.
type paper struct {
	mu   sync.Mutex // verbs may run concurrently
	out  io.Writer
	last int
}

// number returns the number of a new interface.
func (p *paper) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return p.last
}

// did prints the operation of a verb.
func (p *paper) did(format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.out, "     > "+format+"\n", args...)
	return err
}

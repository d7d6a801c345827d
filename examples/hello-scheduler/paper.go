package main

import (
	"fmt"
	"io"
	"sync"
)

// paper is a system of which nothing is left but what is written down.
type paper struct {
	mu   sync.Mutex // verbs may run at once
	out  io.Writer
	last int
}

// number is that of a new interface.
func (p *paper) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return p.last
}

// did writes down what a verb did.
func (p *paper) did(format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.out, "     > "+format+"\n", args...)
	return err
}

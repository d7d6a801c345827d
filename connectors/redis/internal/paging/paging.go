// Package paging decides how many keys one request asks for. A server keeps an answer in its memory until it is
// sent. That counts towards maxmemory, so other keys may be evicted for it, and towards maxmemory-clients, beyond
// which the server ends the connection. So an answer should have few megabytes, however large the values are.
package paging

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Size is the size of requests. It learns from the answers. The zero value is ready. Its methods are safe for
// concurrent use.
type Size struct {
	mu          sync.Mutex // guards the fields below
	keys, bytes int        // of the answers so far; older ones count less
	breaks      int        // how often the server ended the connection during an answer
}

const (
	first    = 100     // keys of a request, as long as the size of the values is not known
	answer   = 3 << 20 // bytes of an answer: less than the 4 MiB that the agent keeps of it, since values differ
	smallest = 64 << 10
	perKey   = 16      // bytes of an answer for each key, besides its value
	recent   = 1 << 16 // keys
)

// Keys returns the largest number of keys for the next request.
func (s *Size) Keys() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most()
}

func (s *Size) most() int {
	limit := max(answer>>s.breaks, smallest)
	if s.keys == 0 {
		return first * limit / answer
	}
	return max(1, limit*s.keys/s.bytes)
}

// Answered records the values in an answer. It ignores a small answer that could have had more keys: a few keys
// that change often say little about the others.
func (s *Size) Answered(events []kvdbsync.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, bytes := 0, 0
	for _, e := range events {
		if e.Value != nil {
			keys++
			bytes += perKey + len(e.Value)
		}
	}
	if keys < min(first, s.most()) {
		return
	}
	s.keys, s.bytes = s.keys+keys, s.bytes+bytes
	if s.keys > recent {
		s.keys, s.bytes = s.keys/2, s.bytes/2
	}
}

// Failed returns the error of a request. It halves the later requests if the server has ended the connection:
// the size of the answer may be the reason, and the server would do it again.
func (s *Size) Failed(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer>>s.breaks > smallest {
		s.breaks++
	}
	return fmt.Errorf("%w: the server ended the connection; if its maxmemory-clients or client-output-buffer-limit is the reason, raise that", err)
}

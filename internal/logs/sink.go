package logs

import (
	"io"
	"sync"
	"time"
)

const (
	// patience is how long a writer of a line waits for a reader that takes nothing. Then nobody waits until it has caught up.
	patience = 100 * time.Millisecond
	// mostWaiting bounds the lines that wait for the reader, in bytes. Further ones are left out.
	mostWaiting = 1 << 20
)

// A Sink is an output that does not stop who writes into it: a log collector that reads no more would otherwise stop the
// program at its next line. As long as the reader keeps up, each line is written when Write returns, so none is lost when
// the program crashes. The methods may be called from any goroutine; Write starts one that ends with the last line.
type Sink struct {
	out    io.Writer
	caught func(lost int) // tells a reader that has caught up how many lines it has missed. It writes to out.

	mu      sync.Mutex // guards the fields below
	queue   []line
	bytes   int  // of queue
	writing bool // a goroutine takes from queue
	stuck   bool // a line was not written for patience
	lost    int  // lines since the reader has caught up
}

// A line waits to be written.
type line struct {
	text    []byte
	written chan struct{} // closed when it was
}

// NewSink returns a Sink that passes lines on to out.
func NewSink(out io.Writer) *Sink { return &Sink{out: out, caught: func(int) {}} }

// Write takes a whole line. It never fails: nobody could be told.
func (s *Sink) Write(text []byte) (int, error) {
	written, wait := s.add(text)
	if !wait {
		return len(text), nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
		s.mu.Lock()
		s.stuck = s.writing
		s.mu.Unlock()
	}
	return len(text), nil
}

// add queues a line, if there is room. wait says that written will be closed soon.
func (s *Sink) add(text []byte) (written <-chan struct{}, wait bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+len(text) > mostWaiting {
		s.lost++
		return nil, false
	}
	l := line{append([]byte(nil), text...), make(chan struct{})}
	s.queue = append(s.queue, l)
	s.bytes += len(text)
	if !s.writing {
		s.writing = true
		go s.drain()
	}
	return l.written, !s.stuck
}

// drain writes lines until there are none.
func (s *Sink) drain() {
	for {
		next, lost, ok := s.next()
		switch {
		case ok:
			_, _ = s.out.Write(next.text) // a log that cannot be written has no place to say so
			close(next.written)
			s.mu.Lock()
			s.bytes -= len(next.text)
			s.mu.Unlock()
		case lost > 0:
			s.caught(lost)
		default:
			return
		}
	}
}

// next takes the first line. Without one, it takes the number of lost lines, or ends the writing.
func (s *Sink) next() (l line, lost int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 {
		l = s.queue[0]
		s.queue[0] = line{}
		s.queue = s.queue[1:]
		return l, 0, true
	}
	lost, s.lost = s.lost, 0
	if lost == 0 {
		s.writing, s.stuck, s.queue = false, false, nil
	}
	return line{}, lost, false
}

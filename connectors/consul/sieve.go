package consul

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A sieve stands between an answer and the decoder of JSON, which reads a pair whole before
// it looks at it. It cuts strings that are too long for a value, and ends an answer whose
// pairs are too large, too deeply nested or too many.
//
// After a string that was cut it adds "!" and the length that the string had. That is no
// base64, so no value can look like it.
type sieve struct {
	in      io.Reader
	longest int64 // bytes of a string
	largest int64 // bytes of a pair
	most    int64 // bytes of an answer
	bounds  kvdbsync.Bounds

	buf     []byte
	out     []byte // of buf's size, or a little more
	err     error  // after out
	text    bool   // within a string
	escaped bool   // after a backslash in it
	length  int64  // of the string
	depth   int
	pair    int64 // bytes since the last pair
	total   int64
}

const (
	mostDepth   = 8       // Consul's pairs have 2
	mostDropped = 4 << 30 // bytes of one string that is cut
)

func newSieve(in io.Reader, bounds kvdbsync.Bounds) *sieve {
	bounds = bounds.WithDefaults()
	longest := int64(base64.StdEncoding.EncodedLen(int(bounds.Value)))
	return &sieve{
		in: in, longest: longest, largest: 2*longest + 64<<10, most: 2 * bounds.Listing, bounds: bounds,
		buf: make([]byte, 32<<10),
	}
}

// Read implements io.Reader.
func (s *sieve) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		n, err := s.in.Read(s.buf)
		s.out = make([]byte, 0, n+32)
		if s.err = s.take(s.buf[:n]); s.err != nil {
			return 0, s.err
		}
		s.err = err
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// take hands on what of b is to be read.
func (s *sieve) take(b []byte) error {
	for len(b) > 0 {
		step := s.between
		if s.text {
			step = s.within
		}
		n, err := step(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// between takes what is up to the next string.
func (s *sieve) between(b []byte) (n int, err error) {
	n = len(b)
	if quote := bytes.IndexByte(b, '"'); quote >= 0 {
		n = quote + 1
		s.text, s.length = true, 0
	}
	err = s.pass(b[:n])
	for _, c := range b[:n] {
		switch c {
		case '[', '{':
			if s.depth++; s.depth > mostDepth {
				return n, fmt.Errorf("%w: it is nested more than %d levels deep", ErrNotConsul, mostDepth)
			}
		case ']', '}':
			if s.depth--; s.depth == 1 {
				s.pair = 0
			}
		}
	}
	return n, err
}

// within takes a part of a string, or its end.
func (s *sieve) within(b []byte) (n int, err error) {
	end := bytes.IndexByte(b, '"')
	part := b
	if end >= 0 {
		part = b[:end]
	}
	if slash := bytes.IndexByte(part, '\\'); slash >= 0 || s.escaped {
		part = part[:max(slash, 0)]
		if len(part) == 0 { // one byte: a backslash, or what it escapes
			s.escaped = !s.escaped
			return 1, s.keep(b[:1])
		}
		return len(part), s.keep(part)
	}
	if len(part) > 0 {
		return len(part), s.keep(part)
	}
	s.text = false
	if s.length > s.longest {
		s.out = append(s.out, '!')
		s.out = strconv.AppendInt(s.out, s.length, 10)
	}
	return 1, s.pass(b[:1])
}

// keep hands on what of a string is not too long.
func (s *sieve) keep(part []byte) error {
	room := s.longest - s.length
	if s.length += int64(len(part)); s.length > mostDropped {
		return fmt.Errorf("%w: a string has more than %d bytes", kvdbsync.ErrTooMuch, int64(mostDropped))
	}
	return s.pass(part[:max(0, min(room, int64(len(part))))])
}

func (s *sieve) pass(part []byte) error {
	s.out = append(s.out, part...)
	s.total += int64(len(part))
	switch s.pair += int64(len(part)); {
	case s.pair > s.largest:
		return fmt.Errorf("%w: a pair has more than %d bytes", kvdbsync.ErrTooMuch, s.largest)
	case s.total > s.most:
		return fmt.Errorf("%w: the answer has more bytes than max-listing-size allows, %d", kvdbsync.ErrTooMuch, s.bounds.Listing)
	}
	return nil
}

// A boundedBody is the body of an answer that the library reads whole.
type boundedBody struct {
	io.ReadCloser
	left   int64
	bounds kvdbsync.Bounds
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.bounds.PageTooLarge()
	}
	return n, err
}

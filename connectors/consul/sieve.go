package consul

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A sieve stands between an answer and the JSON decoder, which reads a pair whole before
// the caller can check it. The sieve cuts strings that are too long for a value. It ends
// an answer with an error if its pairs are too large, too deeply nested or too many.
//
// After a cut string it adds "!" and the string's original length. This is not valid
// base64, so no value can look like it.
type sieve struct {
	in      io.Reader
	longest int64 // maximum bytes of a string
	largest int64 // maximum bytes of a pair
	most    int64 // maximum bytes of the answer
	bounds  kvdbsync.Bounds

	buf     []byte
	out     []byte // ready to be read; of buf's size, or a little more
	err     error  // returned after out
	text    bool   // inside a string
	escaped bool   // after a backslash in the string
	length  int64  // of the string
	depth   int
	pair    int64 // bytes since the end of the last pair
	total   int64
}

const (
	mostDepth   = 8       // Consul's pairs have 2
	mostDropped = 4 << 30 // bytes of one string that is cut
)

// newSieve bounds an answer while it is read. Values are in base64, a third longer than
// their bytes, and the JSON around them is allowed as much again.
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
		s.err = s.take(s.buf[:n])
		if s.err != nil {
			return 0, s.err
		}
		s.err = err
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// take appends the checked part of b to out.
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

// between takes the bytes up to the next string.
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
			s.depth++
			if s.depth > mostDepth {
				return n, fmt.Errorf("%w: it is nested more than %d levels deep", ErrNotConsul, mostDepth)
			}
		case ']', '}':
			s.depth--
			if s.depth == 1 {
				s.pair = 0
			}
		}
	}
	return n, err
}

// within takes a part of a string, or its end.
func (s *sieve) within(b []byte) (n int, err error) {
	before, _, ok := bytes.Cut(b, []byte{'"'})
	part := b
	if ok {
		part = before
	}
	if slash := bytes.IndexByte(part, '\\'); slash >= 0 || s.escaped {
		part = part[:max(slash, 0)]
		if len(part) == 0 { // one byte: a backslash, or the escaped character
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

// keep appends the part of a string that is within the limit.
func (s *sieve) keep(part []byte) error {
	room := s.longest - s.length
	s.length += int64(len(part))
	if s.length > mostDropped {
		return fmt.Errorf("%w: a string has more than %d bytes", kvdbsync.ErrTooMuch, int64(mostDropped))
	}
	return s.pass(part[:max(0, min(room, int64(len(part))))])
}

// pass hands bytes on, and counts them for the pair and for the whole answer.
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

// A boundedBody limits the body of an answer that the library reads whole.
type boundedBody struct {
	io.ReadCloser
	left   int64
	bounds kvdbsync.Bounds
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, b.bounds.PageTooLarge()
	}
	return n, err
}

package redis

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/keyplane/keyplane/kvdbsync"
)

// ErrNotRedis says that an answer does not follow the Redis protocol.
var ErrNotRedis = errors.New("the answer is not one of redis")

// The library trusts the server: it allocates the length that an answer claims, and
// recurses for each level of nesting. So a limiter stands between the connection and the
// library. It parses the protocol (RESP2 and RESP3) and ends the connection when an answer
// exceeds the bounds. It replaces a string that is too large by a short one, its mark. The
// bytes of such a string are read and dropped.

const (
	mostDepth   = 32       // of nested answers; COMMAND needs 8
	mostLine    = 64 << 10 // bytes
	mostDropped = 4 << 30  // bytes of one string that is dropped
	mostTexts   = 4 << 20  // bytes of the strings of one page, or 5/4 of max-value-size: the sum of large values is in memory at once
	perElement  = 64       // cost of an element in addition to its bytes: about the library's allocation
	ownAnswers  = 1 << 20  // bytes of one answer about the server itself, such as INFO
)

// A mark begins the string that replaces a dropped one. It is random, so that no value can
// be mistaken for it.
var mark = "\x00dropped by the agent " + rand.Text() + " "

// A dropped describes a string that was too large and was not kept.
type dropped struct {
	// The length that the server announced, in bytes. It goes into the error about the value.
	size   int64
	noRoom bool // its page is full; otherwise the string is larger than a value may be
}

// mark returns the text that takes the place of a dropped value. It begins with the random mark, so no value of a server can be mistaken for it.
func (d dropped) mark() string { return fmt.Sprintf("%s%t %d", mark, d.noRoom, d.size) }

// droppedFrom parses a mark; false: the text is not a mark.
func droppedFrom(text string) (d dropped, ok bool) {
	rest, ok := strings.CutPrefix(text, mark)
	if !ok {
		return d, false
	}
	_, err := fmt.Sscanf(rest, "%t %d", &d.noRoom, &d.size)
	return d, err == nil
}

// limiting limits the answers on connections. alone means that each answer has its own
// bound, because the server sends answers without a request. Otherwise all answers to one
// write share a bound.
func limiting(dial dialFunc, bounds kvdbsync.Bounds, alone bool) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		l := newLimiter(conn, bounds, alone)
		if socket := socketOf(conn); socket != nil {
			return openLimiter{l, socket}, nil
		}
		return l, nil
	}
}

// An openLimiter lets the library see whether the server has closed an idle connection. Without
// that, a command that is onlyOnce would fail on it.
type openLimiter struct {
	*limiter
	syscall.Conn // the socket
}

// socketOf returns the socket below a connection; nil: it is not known.
func socketOf(conn net.Conn) syscall.Conn {
	if bound, ok := conn.(*boundConn); ok {
		conn = bound.Conn
	}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	socket, _ := conn.(syscall.Conn)
	return socket
}

// A limiter is a connection that passes on only well-formed answers within the bounds. One
// goroutine at a time reads; unless alone, the same one writes.
type limiter struct {
	net.Conn
	// Its buffer holds the longest line, so a line is parsed before any of it is passed on.
	in     *bufio.Reader
	bounds kvdbsync.Bounds
	alone  bool

	spent   int64   // of bounds.Page
	texts   int64   // bytes of strings in the page
	pushed  int64   // bytes since the last answer other than a push; only if alone
	nest    []int64 // remaining elements of the answer and of the nested ones
	out     []byte  // output before the next input
	pass    int64   // bytes of a string, with its end, to pass on
	drop    int64   // bytes of a string, with its end, to drop
	instead []byte  // output after the dropped bytes
	err     error   // ends the connection
}

// newLimiter wraps a connection. alone means that its only answers are those of one
// listing.
func newLimiter(conn net.Conn, bounds kvdbsync.Bounds, alone bool) *limiter {
	return &limiter{Conn: conn, in: bufio.NewReaderSize(conn, mostLine), bounds: bounds.WithDefaults(), alone: alone}
}

// Write implements net.Conn.
func (l *limiter) Write(p []byte) (int, error) {
	if !l.alone {
		l.spent, l.texts = 0, 0
	}
	return l.Conn.Write(p)
}

// Read implements net.Conn. It blocks only if it has no output.
func (l *limiter) Read(p []byte) (n int, err error) {
	for n < len(p) {
		switch {
		case len(l.out) > 0:
			some := copy(p[n:], l.out)
			l.out = l.out[some:]
			n += some
		case l.err != nil:
			return n, orNil(l.err, n)
		case n > 0 && !l.ready():
			return n, nil
		case l.pass > 0:
			some, failed := l.in.Read(p[n:min(int64(len(p)), int64(n)+l.pass)])
			n += some
			l.pass -= int64(some)
			err = failed
		case l.drop > 0:
			some, failed := l.in.Discard(int(min(l.drop, mostLine)))
			l.drop -= int64(some)
			if l.drop == 0 {
				l.out = l.instead
			}
			err = failed
		default:
			err = l.next()
		}
		var slow net.Error
		switch {
		case errors.As(err, &slow) && slow.Timeout():
			return n, orNil(err, n) // the next Read continues
		case err != nil:
			l.err = err
		}
	}
	return n, nil
}

// orNil holds back an error as long as there is output. The next Read returns it. So a caller
// that checks the error first does not lose the bytes before it.
func orNil(err error, n int) error {
	if n > 0 {
		return nil
	}
	return err
}

// ready reports whether the next step will not block.
func (l *limiter) ready() bool {
	if l.in.Buffered() == 0 {
		return false
	}
	if l.pass > 0 || l.drop > 0 {
		return true
	}
	some, _ := l.in.Peek(l.in.Buffered()) // never fails
	return bytes.IndexByte(some, '\n') >= 0
}

// line reads a line. If that fails, no input is lost.
func (l *limiter) line() ([]byte, error) {
	for {
		some, _ := l.in.Peek(l.in.Buffered()) // never fails
		if end := bytes.IndexByte(some, '\n'); end >= 0 {
			_, err := l.in.Discard(end + 1)
			return some[:end+1], err
		}
		if len(some) == mostLine {
			return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrNotRedis, mostLine)
		}
		if _, err := l.in.Peek(len(some) + 1); err != nil {
			return nil, err
		}
	}
}

// next reads the head of an element. The first byte of its line is the type, by the
// specification of RESP3. Null, numbers, booleans and short texts end with the line; the
// others announce a length.
func (l *limiter) next() error {
	line, err := l.line()
	if err != nil {
		return err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return fmt.Errorf("%w: it has the line %.40q", ErrNotRedis, line)
	}
	if len(l.nest) == 0 && l.alone {
		l.spent, l.texts = 0, 0
	}
	if err := l.spend(int64(len(line)) + perElement); err != nil {
		return err
	}
	kind, text := line[0], line[1:len(line)-2]
	if len(l.nest) == 0 && kind != '>' {
		l.pushed = 0
	}
	if strings.IndexByte("+-:,#(_", kind) >= 0 {
		l.out = line
		l.done()
		return nil
	}
	return l.sized(line, kind, string(text))
}

// sized reads the head of an element with a length. A length of -1 is the null of RESP2.
// Streamed elements, with the length "?", are refused: no command of this package asks for
// them.
func (l *limiter) sized(line []byte, kind byte, length string) error {
	size, err := strconv.ParseInt(length, 10, 64)
	isText := strings.IndexByte("$=!", kind) >= 0
	switch {
	case !isText && strings.IndexByte("*~>%", kind) < 0:
		return fmt.Errorf("%w: it has an element %.40q", ErrNotRedis, line)
	case length == "-1" && (kind == '$' || kind == '*'): // null
		l.out = line
		l.done()
		return nil
	case err != nil || size < 0:
		return fmt.Errorf("%w: it has the length %.40q", ErrNotRedis, line)
	case kind == '!' && size > mostLine:
		return fmt.Errorf("%w: an error of it has %d bytes", ErrNotRedis, size)
	case isText:
		return l.text(line, size)
	case kind == '%':
		return l.open(line, size, 2)
	}
	return l.open(line, size, 1)
}

// text passes on a string, or its mark.
func (l *limiter) text(line []byte, size int64) error {
	limit := max(l.bounds.Value, ownAnswers)
	tooLarge := size > limit
	hasRoom := l.spent+size <= l.bounds.Page && (l.alone || l.texts+size <= max(mostTexts, limit+limit/4))
	if !tooLarge && hasRoom {
		l.spent, l.texts, l.pushed = l.spent+size, l.texts+size, l.pushed+size
		l.out, l.pass = line, size+2
		l.done()
		return nil
	}
	if !tooLarge && l.alone {
		return l.bounds.PageTooLarge()
	}
	if size > mostDropped {
		return fmt.Errorf("%w: a string of %d bytes", kvdbsync.ErrTooMuch, size)
	}
	instead := dropped{size: size, noRoom: !tooLarge}.mark()
	l.drop, l.instead = size+2, fmt.Appendf(nil, "$%d\r\n%s\r\n", len(instead), instead)
	l.done()
	return nil
}

// open begins an element with n times each children. A map has two children for each of its n
// entries. The check divides before it multiplies, so that a hostile length cannot overflow.
func (l *limiter) open(line []byte, n, each int64) error {
	if n > l.bounds.Page/perElement/each || (l.bounds.Page-l.spent)/perElement < n*each {
		return fmt.Errorf("%w, for %d elements", l.bounds.PageTooLarge(), n)
	}
	if len(l.nest) == mostDepth {
		return fmt.Errorf("%w: it is nested more than %d levels deep", ErrNotRedis, mostDepth)
	}
	l.out = line
	if n == 0 {
		l.done()
		return nil
	}
	l.nest = append(l.nest, n*each)
	return nil
}

// done counts a complete element, apart from its bytes. The last child of an array completes
// the array too, and so on upwards.
func (l *limiter) done() {
	for last := len(l.nest) - 1; last >= 0; last-- {
		l.nest[last]--
		if l.nest[last] > 0 {
			return
		}
		l.nest = l.nest[:last]
	}
}

// spend counts bytes of the present page, and of the messages before the answer. Without the
// second bound a server could keep a watch busy for ever with messages that nobody asked for.
func (l *limiter) spend(bytes int64) error {
	l.spent += bytes
	if l.spent > l.bounds.Page {
		return l.bounds.PageTooLarge()
	}
	l.pushed += bytes
	if l.alone && l.pushed > l.bounds.Listing {
		return fmt.Errorf("%w: the messages before the answer have more bytes than max-listing-size allows, %d", kvdbsync.ErrTooMuch, l.bounds.Listing)
	}
	return nil
}

// Package packed keeps texts that are rarely read in little memory. A large text is kept
// compressed (RFC 1951), and a small one as it is.
//
//	t := packed.Of(text)
//	text = t.Bytes()
//
// Configuration repeats itself: a list of 100,000 addresses takes a few percent of its text.
// Packing a megabyte takes about 4 ms, and unpacking it 6 ms.
package packed

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// Large is the size, in bytes, from which texts are compressed.
const Large = 64 << 10

// A Text is an immutable text. The zero Text is that of nil. Any goroutine may use it.
type Text struct {
	kept []byte
	size int32 // of the text, if kept is compressed; otherwise 0
}

// Of returns the text b. Nobody may change b afterwards.
func Of(b []byte) Text {
	if len(b) < Large || int(int32(len(b))) != len(b) {
		return Text{kept: b}
	}
	p := packers.Get().(*packer)
	defer packers.Put(p)
	if kept := p.pack(b); len(kept) < len(b)/2 {
		return Text{kept: bytes.Clone(kept), size: int32(len(b))}
	}
	return Text{kept: b}
}

// packers are kept for a while, since each takes a megabyte.
var packers = sync.Pool{New: func() any { return newPacker() }}

// A packer compresses one text after the other.
type packer struct {
	out bytes.Buffer
	w   *flate.Writer
}

func newPacker() *packer {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(fmt.Sprintf("packed: %v", err)) // the level is a constant
	}
	return &packer{w: w}
}

// pack compresses b. The result is valid until the next call.
func (p *packer) pack(b []byte) []byte {
	p.out.Reset()
	p.w.Reset(&p.out)
	_, err := p.w.Write(b)
	if err == nil {
		err = p.w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("packed: %v", err)) // a bytes.Buffer takes all
	}
	return p.out.Bytes()
}

// Bytes returns the text. Nobody may change it.
func (t Text) Bytes() []byte {
	if t.size == 0 {
		return t.kept
	}
	b := make([]byte, t.size)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(t.kept)), b); err != nil {
		panic(fmt.Sprintf("packed: %v", err)) // pack made it
	}
	return b
}

// Equal reports whether two texts are the same. It unpacks neither: equal texts are packed into
// equal bytes.
func (t Text) Equal(other Text) bool { return t.size == other.size && bytes.Equal(t.kept, other.kept) }

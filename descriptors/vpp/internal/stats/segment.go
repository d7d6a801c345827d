package stats

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A segment is the memory in which VPP keeps its counters. It is read like a file and never
// mapped: a segment that shrinks or lies gives an error, not a fault. VPP 22.02 to 26.06
// write version 2 of it, in the byte order of the machine:
//
//	header      version, base, epoch, in progress, directory: 8 bytes each
//	directory   a vector of entries
//	entry       type (4 bytes), padding (4), value or address (8), name (128, ends with 0)
//	vector      its elements; the 8 bytes before them begin with their number (4 bytes)
//	counters    a vector of addresses, one for each thread, of vectors of counters
//	counter     simple: 8 bytes; combined: packets and bytes, 8 bytes each
//
// Addresses are those in VPP's memory, where the segment begins at base.
type segment struct {
	ctx  context.Context
	file io.ReaderAt
	size uint64
	base uint64
	left uint64 // bytes that may still be read: vectors do not overlap
}

const (
	version     = 2
	headerSize  = 5 * 8
	entrySize   = 4 + 4 + 8 + nameSize
	nameSize    = 128
	vectorStart = 8 // bytes before the elements
	chunkSize   = 64 << 10
)

// Types of directory entries. VPP has others.
const (
	simpleCounters   = 2
	combinedCounters = 3
)

// recheckAfter is the pause after which a segment is read again that VPP was changing.
const recheckAfter = time.Millisecond

// errChanging asks the caller to read again: VPP changes the directory in place.
var errChanging = errors.New("VPP is changing it")

// read returns the counters of the interfaces in of. It begins again while VPP changes the
// directory, until ctx ends.
func read(ctx context.Context, file io.ReaderAt, size int64, of map[uint32]bool) (map[uint32]*Counters, error) {
	for begun := false; ; begun = true {
		s := &segment{ctx: ctx, file: file, size: uint64(max(0, size))}
		s.left = s.size
		counters, err := s.tryRead(of)
		switch {
		case ctx.Err() != nil && (begun || errors.Is(err, errChanging)):
			return nil, fmt.Errorf("%w: %w", errChanging, ctx.Err())
		case !errors.Is(err, errChanging):
			return counters, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(recheckAfter):
		}
	}
}

// A header is the beginning of the segment. inProgress is set while VPP changes the
// directory; epoch counts such changes.
type header struct{ version, base, epoch, inProgress, directory uint64 }

// header reads the header anew at each call, since VPP changes it.
func (s *segment) header() (h header, err error) {
	var b [headerSize]byte
	if err := s.at(b[:], 0); err != nil {
		return header{}, fmt.Errorf("header: %w", err)
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	h = header{word(0), word(1), word(2), word(3), word(4)}
	switch {
	case h.version != version:
		return h, fmt.Errorf("its version is %d; expected %d", h.version, version)
	case h.inProgress != 0:
		return h, errChanging
	}
	return h, nil
}

// tryRead returns errChanging if the directory changed meanwhile, whatever else went wrong.
func (s *segment) tryRead(of map[uint32]bool) (map[uint32]*Counters, error) {
	before, err := s.header()
	if err != nil {
		return nil, err
	}
	s.base = before.base
	counters, wrong := s.interfaces(before.directory, of)
	after, err := s.header()
	switch {
	case err != nil:
		return nil, err
	case after != before:
		return nil, errChanging
	case wrong != nil:
		return nil, wrong
	}
	return counters, nil
}

// interfaces adds up the counters of each thread of VPP.
func (s *segment) interfaces(directory uint64, of map[uint32]bool) (map[uint32]*Counters, error) {
	out := map[uint32]*Counters{}
	err := s.vector(directory, entrySize, noLimit, func(_ uint64, entry []byte) error {
		name, _, _ := bytes.Cut(entry[16:], []byte{0})
		count := counting[string(name)]
		if count == nil {
			return nil
		}
		err := s.counters(binary.NativeEndian.Uint32(entry), binary.NativeEndian.Uint64(entry[8:]), of, func(index uint32, n [2]uint64) {
			if out[index] == nil {
				out[index] = &Counters{}
			}
			count(out[index], n)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// counters calls count for the counters of each thread at an address; 0: VPP has none yet.
func (s *segment) counters(kind uint32, threads uint64, of map[uint32]bool, count func(index uint32, n [2]uint64)) error {
	size, ok := map[uint32]uint64{simpleCounters: 8, combinedCounters: 16}[kind]
	if !ok {
		return fmt.Errorf("its type is %d; expected counters, %d or %d", kind, simpleCounters, combinedCounters)
	}
	if threads == 0 {
		return nil
	}
	var limit uint64
	for index := range of {
		limit = max(limit, uint64(index)+1)
	}
	return s.vector(threads, 8, noLimit, func(_ uint64, address []byte) error {
		thread := binary.NativeEndian.Uint64(address)
		if thread == 0 {
			return nil
		}
		return s.vector(thread, size, limit, func(index uint64, b []byte) error {
			if !of[uint32(index)] {
				return nil
			}
			n := [2]uint64{binary.NativeEndian.Uint64(b)}
			if size == 16 {
				n[1] = binary.NativeEndian.Uint64(b[8:])
			}
			count(uint32(index), n)
			return nil
		})
	})
}

// noLimit is the length of a vector that nothing bounds but the segment.
const noLimit = 1<<64 - 1

// vector calls each for the elements of the vector at an address, at most limit of them.
func (s *segment) vector(address, elementSize, limit uint64, each func(index uint64, element []byte) error) error {
	start := address - s.base
	if address < s.base || start < vectorStart || start > s.size {
		return fmt.Errorf("a vector begins at %#x; the segment has %d bytes from %#x on", address, s.size, s.base)
	}
	var b [4]byte
	if err := s.at(b[:], start-vectorStart); err != nil {
		return err
	}
	n := uint64(binary.NativeEndian.Uint32(b[:]))
	if n > (s.size-start)/elementSize {
		return fmt.Errorf("a vector has %d elements of %d bytes; %d bytes are left in the segment", n, elementSize, s.size-start)
	}
	n = min(n, limit)
	if n*elementSize > s.left {
		return fmt.Errorf("its vectors have more than its %d bytes together", s.size)
	}
	s.left -= n * elementSize
	perChunk := chunkSize / elementSize
	chunk := make([]byte, min(n, perChunk)*elementSize)
	for i := uint64(0); i < n; i++ {
		in := i % perChunk
		if in == 0 {
			chunk = chunk[:min(n-i, perChunk)*elementSize]
			if err := s.at(chunk, start+i*elementSize); err != nil {
				return err
			}
		}
		if err := each(i, chunk[in*elementSize:(in+1)*elementSize]); err != nil {
			return err
		}
	}
	return nil
}

// at reads all of b at an offset.
func (s *segment) at(b []byte, offset uint64) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	n, err := s.file.ReadAt(b, int64(offset))
	if n == len(b) {
		return nil
	}
	return fmt.Errorf("reading %d bytes at %d of %d: %w", len(b), offset, s.size, err)
}

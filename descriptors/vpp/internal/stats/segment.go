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

// A Segment is the memory in which VPP keeps its counters. It is read like a file and never
// mapped: a segment that shrinks or lies gives an error, not a fault. VPP 22.02 to 26.06
// write version 2 of it, in the byte order of the machine:
//
//	header      version, base, epoch, in progress, directory, errors: 8 bytes each
//	directory   a vector of entries
//	entry       type (4 bytes), padding (4), value or address (8), name (128, ends with 0)
//	vector      its elements; the 8 bytes before them begin with their number (4 bytes)
//	counters    a vector of addresses, one for each thread, of vectors of counters
//	counter     simple: 8 bytes; combined: packets and bytes, 8 bytes each
//	names       a vector of addresses of vectors of characters, which end with 0; address 0: none
//	link        the index of an entry with counters (4 bytes), and one in each of its vectors (4)
//
// Addresses are those in VPP's memory, where the segment begins at base. Only VPP 22.02 has the
// counters of errors at an address in the header, and other numbers for types of entries.
//
// A Segment is valid during the call that it was passed to.
type Segment struct {
	ctx    context.Context //nolint:containedctx // of one read
	file   io.ReaderAt
	size   uint64
	header header
	left   uint64 // bytes that may still be read: vectors do not overlap
}

const (
	version     = 2
	headerSize  = 6 * 8
	entrySize   = 4 + 4 + 8 + nameSize
	nameSize    = 128
	vectorStart = 8 // bytes before the elements
	chunkSize   = 64 << 10
)

// A Kind is a kind of entry.
type Kind int

// An Other entry is empty, or has something that nobody here reads.
const (
	Other Kind = iota
	Scalar
	Simple
	Combined
	Names
	Link
)

// Types of directory entries since VPP 22.06.
const (
	scalarType   = 1
	simpleType   = 2
	combinedType = 3
	namesType    = 4
	linkType     = 6
	gaugeType    = 9 // since 26.02, for many scalars
)

// In VPP 22.02 the type errorType is one counter of the vector of errors, and the types from
// there on have a number that is greater by one.
const errorType = 4

// An Entry is an entry of the directory.
type Entry struct {
	Kind Kind
	Name []byte // valid until the next entry
	// Target is the entry that a Link leads to, for Segment.Entry, and Index that of the counter
	// in each of its vectors.
	Target uint64
	Index  uint32

	data uint64
}

// errorsTarget is the Target of the counters of errors of VPP 22.02, which have no entry.
const errorsTarget = 1 << 32

// Value returns the number of a Scalar.
func (e Entry) Value() uint64 { return e.data }

// entryOf returns the entry of the directory with some bytes.
func (s *Segment) entryOf(b []byte) Entry {
	name, _, _ := bytes.Cut(b[16:entrySize], []byte{0})
	kind, data := binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint64(b[8:])
	if s.header.errors != 0 { // VPP 22.02
		if kind == errorType {
			return Entry{Kind: Link, Name: name, Target: errorsTarget, Index: uint32(data)}
		}
		if kind > errorType {
			kind--
		}
	}
	e := Entry{Name: name, data: data}
	switch kind {
	case scalarType, gaugeType:
		e.Kind = Scalar
	case simpleType:
		e.Kind = Simple
	case combinedType:
		e.Kind = Combined
	case namesType:
		e.Kind = Names
	case linkType:
		e.Kind, e.Target, e.Index = Link, uint64(binary.NativeEndian.Uint32(b[8:])), binary.NativeEndian.Uint32(b[12:])
	}
	return e
}

// recheckAfter is the pause after which a segment is read again that VPP was changing.
const recheckAfter = time.Millisecond

// errChanging asks the caller to read again: VPP changes the directory in place.
var errChanging = errors.New("VPP is changing it")

// ReadFrom is Read for a segment that is open. It begins again while VPP changes the directory,
// until ctx ends.
func ReadFrom(ctx context.Context, file io.ReaderAt, size int64, collect func(*Segment) error) error {
	for begun := false; ; begun = true {
		s := &Segment{ctx: ctx, file: file, size: uint64(max(0, size))}
		s.left = s.size
		err := s.tryRead(collect)
		switch {
		case ctx.Err() != nil && (begun || errors.Is(err, errChanging)):
			return fmt.Errorf("%w: %w", errChanging, ctx.Err())
		case !errors.Is(err, errChanging):
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(recheckAfter):
		}
	}
}

// A header is the beginning of the segment. inProgress is set while VPP changes the
// directory; epoch counts such changes.
type header struct{ version, base, epoch, inProgress, directory, errors uint64 }

// readHeader reads the header anew at each call, since VPP changes it.
func (s *Segment) readHeader() (h header, err error) {
	var b [headerSize]byte
	if err := s.at(b[:], 0); err != nil {
		return header{}, fmt.Errorf("header: %w", err)
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	h = header{word(0), word(1), word(2), word(3), word(4), word(5)}
	switch {
	case h.version != version:
		return h, fmt.Errorf("its version is %d; expected %d", h.version, version)
	case h.inProgress != 0:
		return h, errChanging
	}
	return h, nil
}

// tryRead returns errChanging if the directory changed meanwhile, whatever else went wrong.
func (s *Segment) tryRead(collect func(*Segment) error) (err error) {
	if s.header, err = s.readHeader(); err != nil {
		return err
	}
	wrong := collect(s)
	after, err := s.readHeader()
	switch {
	case err != nil:
		return err
	case after != s.header:
		return errChanging
	}
	return wrong
}

// Entries calls each for the entries of the directory. An error of each ends it.
func (s *Segment) Entries(each func(Entry) error) error {
	return s.vector(s.header.directory, entrySize, NoLimit, func(_ uint64, b []byte) error {
		e := s.entryOf(b)
		if err := each(e); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		return nil
	})
}

// Entry returns the target of a link.
func (s *Segment) Entry(target uint64) (Entry, error) {
	if target == errorsTarget {
		return Entry{Kind: Simple, data: s.header.errors}, nil
	}
	start, n, err := s.length(s.header.directory, entrySize)
	if err != nil {
		return Entry{}, err
	}
	if target >= n {
		return Entry{}, fmt.Errorf("a link leads to entry %d of %d", target, n)
	}
	b := make([]byte, entrySize)
	if err := s.at(b, start+target*entrySize); err != nil {
		return Entry{}, err
	}
	return s.entryOf(b), nil
}

// Counters calls each for the counters of each thread: simple ones are in n[0], combined ones are
// packets and bytes. limit bounds the indexes, and an error of each ends it.
func (s *Segment) Counters(e Entry, limit uint64, each func(thread, index uint64, n [2]uint64) error) error {
	size, ok := map[Kind]uint64{Simple: 8, Combined: 16}[e.Kind]
	if !ok {
		return errors.New("it has no counters")
	}
	return s.vectors(e.data, size, limit, func(thread, index uint64, b []byte) error {
		n := [2]uint64{binary.NativeEndian.Uint64(b)}
		if size == 16 {
			n[1] = binary.NativeEndian.Uint64(b[8:])
		}
		return each(thread, index, n)
	})
}

// mostName is how many bytes of a name are read. VPP's names of interfaces and nodes are shorter.
const mostName = 255

// Names calls each for the names that are not empty.
func (s *Segment) Names(e Entry, each func(index uint64, name string) error) error {
	if e.Kind != Names || e.data == 0 {
		return nil
	}
	return s.vector(e.data, 8, NoLimit, func(index uint64, address []byte) error {
		at := binary.NativeEndian.Uint64(address)
		if at == 0 {
			return nil
		}
		var name []byte
		err := s.vector(at, 1, mostName, func(_ uint64, b []byte) error {
			name = append(name, b...)
			return nil
		})
		name, _, _ = bytes.Cut(name, []byte{0})
		if err != nil || len(name) == 0 {
			return err
		}
		return each(index, string(name))
	})
}

// vectors calls each for the elements of a vector of vectors; 0 is the address of none.
func (s *Segment) vectors(address, elementSize, limit uint64, each func(vector, index uint64, element []byte) error) error {
	if address == 0 {
		return nil
	}
	return s.vector(address, 8, NoLimit, func(vector uint64, b []byte) error {
		address := binary.NativeEndian.Uint64(b)
		if address == 0 {
			return nil
		}
		return s.vector(address, elementSize, limit, func(index uint64, b []byte) error { return each(vector, index, b) })
	})
}

// NoLimit is the length of a vector that nothing bounds but the segment.
const NoLimit = 1<<64 - 1

// vector calls each for the elements of the vector at an address, at most limit of them.
func (s *Segment) vector(address, elementSize, limit uint64, each func(index uint64, element []byte) error) error {
	start, n, err := s.length(address, elementSize)
	if err != nil {
		return err
	}
	n = min(n, limit)
	if vectorStart+n*elementSize > s.left {
		return fmt.Errorf("its vectors have more than its %d bytes together", s.size)
	}
	s.left -= vectorStart + n*elementSize
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

// length returns where the elements of the vector at an address are in the segment, and their
// number. All of them are in it.
func (s *Segment) length(address, elementSize uint64) (start, n uint64, err error) {
	start = address - s.header.base
	if address < s.header.base || start < vectorStart || start > s.size {
		return 0, 0, fmt.Errorf("a vector begins at %#x; the segment has %d bytes from %#x on", address, s.size, s.header.base)
	}
	var b [4]byte
	if err := s.at(b[:], start-vectorStart); err != nil {
		return 0, 0, err
	}
	n = uint64(binary.NativeEndian.Uint32(b[:]))
	if n > (s.size-start)/elementSize {
		return 0, 0, fmt.Errorf("a vector has %d elements of %d bytes; %d bytes are left in the segment", n, elementSize, s.size-start)
	}
	return start, n, nil
}

// at reads all of b at an offset.
func (s *Segment) at(b []byte, offset uint64) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	n, err := s.file.ReadAt(b, int64(offset))
	if n == len(b) {
		return nil
	}
	return fmt.Errorf("reading %d bytes at %d of %d: %w", len(b), offset, s.size, err)
}

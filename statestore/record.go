package statestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"slices"
)

// A header begins each file.
type header struct {
	generation uint64
	length     int64 // minimum length of the file in bytes, at the time of the last note
}

const (
	magic      = "keyplane-state1\n"
	headerSize = int64(len(magic)) + 16
	// lengthAt is the offset of header.length, which is written again as the file grows.
	lengthAt = int64(len(magic)) + 8
)

// bytes returns the header as it is written: the magic, the generation and the length, in
// little endian.
func (h header) bytes() []byte {
	b := binary.LittleEndian.AppendUint64([]byte(magic), h.generation)
	return binary.LittleEndian.AppendUint64(b, uint64(h.length))
}

// errNoHeader says that the file is of another program, or that its first bytes are
// damaged.
var errNoHeader = errors.New("the file does not begin as a state file does")

// readHeader returns errNoHeader if the file is too short or of another kind.
func readHeader(r io.Reader) (h header, err error) {
	b := make([]byte, headerSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, fmt.Errorf("%w: %w", errNoHeader, err)
	}
	if string(b[:len(magic)]) != magic {
		return h, errNoHeader
	}
	h.generation = binary.LittleEndian.Uint64(b[len(magic):])
	h.length = int64(binary.LittleEndian.Uint64(b[lengthAt:]))
	return h, nil
}

// A record is its length, the CRC-32C of its content, and the content: changes. The
// highest bit of the length says that the next record belongs to the same group. The
// records of a group take effect together or not at all.
const (
	recordHead = 8
	more       = 1 << 31
	// recordSize is the size of content in bytes at which a record ends.
	recordSize = 1 << 20
	// mostRecord is the largest size of a record: it may end with a value of any size that
	// a store can have.
	mostRecord = 1 << 30
)

// checksum is CRC-32C, for which processors have an instruction.
func checksum(content []byte) uint32 {
	return crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
}

// openRecord appends room for the head of a record.
func openRecord(b []byte) []byte { return append(b, make([]byte, recordHead)...) }

// closeRecord completes the head of the record that begins at start and ends with b.
func closeRecord(b []byte, start int, flags uint32) {
	content := b[start+recordHead:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(content))|flags)
	binary.LittleEndian.PutUint32(b[start+4:], checksum(content))
}

// The kinds of changes.
const (
	forget = 0
	put    = 1
)

// appendChange appends a put or, for a nil value, a removal. Lengths come before texts.
func appendChange[K string | []byte](b []byte, key K, value []byte) []byte {
	if value == nil {
		b = append(b, forget)
		return appendString(b, key)
	}
	b = append(b, put)
	b = appendString(b, key)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// appendString appends the length as a varint, and the bytes.
func appendString[S string | []byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// changes yields the changes in the content of a record. The bytes are those of content. A
// nil value deletes the key.
func changes(content []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for len(content) > 0 {
			verb := content[0]
			key, rest, ok := cutBytes(content[1:])
			var value []byte
			if ok && verb == put {
				value, rest, ok = cutBytes(rest)
			}
			if !ok || !yield(key, value) {
				return // the checksum was right, so this cannot be damage
			}
			content = rest
		}
	}
}

// cutBytes reads a length and that many bytes, which are never nil.
func cutBytes(b []byte) (out, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}

// A record is one record of a file.
type record struct {
	content []byte
	more    bool
}

var (
	errCut     = errors.New("the last record is cut short")
	errDamaged = errors.New("a record is damaged")
)

// readRecord reads the next record into buf, if that is large enough. left is the number
// of bytes that the file still has. The error is io.EOF at the end, and errCut if the
// record ends beyond the file, or is the last one and its checksum is wrong.
func readRecord(r io.Reader, left int64, buf []byte) (record, error) {
	if left == 0 {
		return record{}, io.EOF
	}
	if left < recordHead {
		return record{}, errCut
	}
	var head [recordHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return record{}, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	sum := binary.LittleEndian.Uint32(head[4:])
	length := int64(size &^ more)
	if length > left-recordHead {
		return record{}, errCut
	}
	if length == 0 {
		return record{}, errDamaged // zeros: no record is empty
	}
	buf = slices.Grow(buf[:0], int(length))[:length]
	if _, err := io.ReadFull(r, buf); err != nil {
		return record{}, err
	}
	switch {
	case checksum(buf) == sum:
		return record{buf, size&more != 0}, nil
	case length == left-recordHead:
		return record{}, errCut
	}
	return record{}, errDamaged
}

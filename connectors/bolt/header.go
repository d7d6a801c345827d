package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// A header is the part of a file that this package reads before the library maps the file
// into memory.
type header struct {
	size       int64 // bytes that the newest transaction needs
	freelist   bool  // the list of free pages is stored; else the library walks through all pages
	readable   bool  // one of the two copies of the header is whole
	transacted uint64
}

const (
	headerMagic   = 0xED0CDAED
	headerVersion = 2
	noFreelist    = ^uint64(0)
	pageHead      = 16 // bytes before the header in its page
	headerBytes   = 64
)

// readHeader reads the newer of the two copies. If neither is readable, the library
// reports the fault.
func readHeader(file io.ReaderAt) header {
	first, pageSize := headerAt(file, 0)
	if first.readable {
		second, _ := headerAt(file, pageSize)
		return newer(first, second)
	}
	for size := int64(1 << 10); size <= 1<<24; size *= 2 {
		if second, _ := headerAt(file, size); second.readable {
			return second
		}
	}
	return header{}
}

// newer returns the header of the later transaction. bbolt writes two in turn, so one is
// always complete.
func newer(a, b header) header {
	if b.readable && b.transacted > a.transacted {
		return b
	}
	return a
}

// headerAt reads a header as bbolt writes it (bbolt internal/common/meta.go), and checks
// its sum. It returns zeros if there is none.
func headerAt(file io.ReaderAt, offset int64) (h header, pageSize int64) {
	var raw [headerBytes]byte
	if _, err := file.ReadAt(raw[:], offset+pageHead); err != nil {
		return header{}, 0
	}
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(raw[at:]) }
	half := func(at int) uint32 { return binary.NativeEndian.Uint32(raw[at:]) }
	sum := fnv.New64a()
	_, _ = sum.Write(raw[:headerBytes-8]) // never fails
	if half(0) != headerMagic || half(4) != headerVersion || word(56) != sum.Sum64() {
		return header{}, 0
	}
	pageSize = int64(half(8))
	return header{
		size: int64(word(40)) * pageSize, freelist: word(32) != noFreelist, transacted: word(48), readable: true,
	}, pageSize
}

// checkSize refuses a file that has lost its end. Memory behind the end of a mapped
// file cannot be read, and a put would fill the lost part with zeros.
func checkSize(file *os.File, size int64) (header, error) {
	h := readHeader(file)
	if h.readable && size < h.size {
		return h, fmt.Errorf("%w: it has %d bytes and should have %d", ErrDamaged, size, h.size)
	}
	return h, nil
}

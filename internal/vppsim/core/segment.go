package core

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A segment is the shared memory with VPP's counters, in the layout of src/vlib/stats of
// VPP 22.02 and later:
//
//	header      version (2), base, epoch, in progress, directory, errors: 8 bytes each, then zeros up to a page
//	directory   a vector of entries: type (4 bytes), padding (4), value or address (8), name (128)
//	vector      its elements; the 8 bytes before them begin with their number (4 bytes)
//	counters    a vector of addresses, one for each thread, of vectors of counters
//	names       a vector of addresses of vectors of characters; address 0: no name
//	symlink     an entry with the indexes of another entry (4 bytes) and of a counter in each of its vectors (4)
//
// VPP 22.02 has the counters of errors at an address in the header, and entries with the index of
// one of them. Later releases have an entry with all of them, and symlinks. VPP 26.02 gave scalars
// that change a type of their own.
//
// Addresses are those in VPP's memory, where the segment begins at segmentBase. A client
// gets the memory as a file from the stats socket. It maps the file and reads it while VPP
// writes. So each content is built in the half of the segment that no client uses, and the
// header then changes to it between two steps of the epoch.
type segment struct {
	file  *os.File
	sock  *net.UnixListener
	epoch uint64
	half  int // with the present content

	release string
}

const (
	segmentBase = 0x7f00_0000_0000
	segmentPage = 4096
	segmentHalf = 64 << 20 // sparse: only written pages take memory
	segmentSize = segmentPage + 2*segmentHalf
)

// Types of entries.
const (
	scalarEntry   = 1
	simpleEntry   = 2
	combinedEntry = 3
	namesEntry    = 4
	emptyEntry    = 5
	symlinkEntry  = 6
	gaugeEntry    = 9 // since 26.02

	// errorEntry is of VPP 22.02. From there on, its types are greater by one.
	errorEntry = 4
)

// newSegment listens at a path. A file from an earlier life is replaced.
func newSegment(path, release string) (*segment, error) {
	fd, err := unix.MemfdCreate("stat segment", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("stats segment: %w", err)
	}
	s := &segment{file: os.NewFile(uintptr(fd), "stat segment"), half: 1, release: release}
	if err := s.file.Truncate(segmentSize); err != nil {
		s.file.Close()
		return nil, fmt.Errorf("stats segment: %w", err)
	}
	_ = os.Remove(path)
	s.sock, err = net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		s.file.Close()
		return nil, fmt.Errorf("stats socket: %w", err)
	}
	s.sock.SetUnlinkOnClose(false) // a killed VPP leaves its socket behind
	return s, nil
}

// close ends the socket, and with it serveStats, which closes the file. Clients keep the
// memory that they have.
func (s *segment) close() { s.sock.Close() }

// give sends the memory to a client, and ends the connection as VPP does. Like VPP's, the message
// has no bytes beside the file. Packages net and unix would add one, so they do not send it.
func (s *segment) give(client *net.UnixConn) {
	defer client.Close()
	rights := unix.UnixRights(int(s.file.Fd()))
	message := unix.Msghdr{Control: &rights[0]}
	message.SetControllen(len(rights))
	raw, err := client.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Write(func(fd uintptr) (done bool) {
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&message)), 0)
		return errno != unix.EAGAIN
	})
}

// An entryOf is the content of one entry.
type entryOf struct {
	name     string
	value    uint64        // of a scalar
	simple   [][]uint64    // by thread
	combined [][][2]uint64 // by thread: packets and bytes
	names    []string
	link     *[2]uint32 // of a symlink
	gauge    bool       // the value is that of a gauge
	empty    bool       // the entry was deleted
}

// allErrors is the name of the entry with the counters of errors.
const allErrors = "/node/errors"

// write makes entries the content.
func (s *segment) write(entries []entryOf) error {
	half := 1 - s.half
	b := &segmentBuilder{start: uint64(segmentPage + half*segmentHalf), release: s.release}
	directory := b.directory(entries)
	if len(b.b) > segmentHalf {
		return fmt.Errorf("stats segment: its content has %d bytes; at most %d fit", len(b.b), segmentHalf)
	}
	if _, err := s.file.WriteAt(b.b, int64(b.start)); err != nil {
		return err
	}
	s.half = half
	s.epoch++
	for _, inProgress := range []uint64{1, 0} {
		if _, err := s.file.WriteAt(words(2, segmentBase, s.epoch, inProgress, directory, b.errors), 0); err != nil {
			return err
		}
	}
	return nil
}

// A segmentBuilder builds the content of one half.
type segmentBuilder struct {
	start   uint64 // offset of the half in the segment
	b       []byte
	release string
	errors  uint64 // address of the counters of errors; 0: an entry has them
}

// vector appends a vector of n elements and returns its address.
func (s *segmentBuilder) vector(n int, elements []byte) uint64 {
	for len(s.b)%8 != 0 {
		s.b = append(s.b, 0)
	}
	s.b = binary.NativeEndian.AppendUint64(s.b, uint64(n))
	address := segmentBase + s.start + uint64(len(s.b))
	s.b = append(s.b, elements...)
	return address
}

// vectors appends a vector of vectors. one returns the elements of a vector and their number.
func (s *segmentBuilder) vectors(n int, one func(i int) (int, []byte)) uint64 {
	addresses := make([]uint64, n)
	for i := range addresses {
		addresses[i] = s.vector(one(i))
	}
	return s.vector(n, words(addresses...))
}

// directory writes the directory, and returns its offset in the segment.
func (s *segmentBuilder) directory(entries []entryOf) uint64 {
	const size, nameAt = 144, 16
	all := make([]byte, 0, size*len(entries))
	for _, e := range entries {
		kind, data := s.data(e)
		if s.release == "22.02" {
			e, kind, data = s.before2206(entries, e, kind, data)
		}
		one := make([]byte, size)
		binary.NativeEndian.PutUint32(one, kind)
		binary.NativeEndian.PutUint64(one[8:], data)
		copy(one[nameAt:size-1], e.name)
		all = append(all, one...)
	}
	return s.vector(len(entries), all)
}

// before2206 returns an entry as VPP 22.02 has it.
func (s *segmentBuilder) before2206(entries []entryOf, e entryOf, kind uint32, data uint64) (_ entryOf, _ uint32, _ uint64) {
	switch {
	case e.name == allErrors:
		s.errors = data
		return entryOf{}, emptyEntry + 1, 0
	case e.link != nil && entries[e.link[0]].name == allErrors:
		return e, errorEntry, uint64(e.link[1])
	case kind >= errorEntry:
		kind++
	}
	return e, kind, data
}

// data returns the type of an entry and its value or address.
func (s *segmentBuilder) data(e entryOf) (kind uint32, data uint64) {
	switch {
	case e.simple != nil:
		return simpleEntry, s.vectors(len(e.simple), func(thread int) (int, []byte) {
			return len(e.simple[thread]), words(e.simple[thread]...)
		})
	case e.combined != nil:
		return combinedEntry, s.vectors(len(e.combined), func(thread int) (int, []byte) {
			var all []uint64
			for _, c := range e.combined[thread] {
				all = append(all, c[:]...)
			}
			return len(e.combined[thread]), words(all...)
		})
	case e.names != nil:
		addresses := make([]uint64, len(e.names))
		for i, name := range e.names {
			if name != "" {
				addresses[i] = s.vector(len(name)+1, append([]byte(name), 0))
			}
		}
		return namesEntry, s.vector(len(addresses), words(addresses...))
	case e.link != nil:
		return symlinkEntry, uint64(e.link[0]) | uint64(e.link[1])<<32
	}
	switch {
	case e.empty:
		return emptyEntry, 0
	case e.gauge && s.release >= "26.02":
		return gaugeEntry, e.value
	}
	return scalarEntry, e.value
}

// words returns 64-bit numbers in the byte order of the machine.
func words(ws ...uint64) []byte {
	b := make([]byte, 0, 8*len(ws))
	for _, w := range ws {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

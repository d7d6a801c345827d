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
//	header      version (2), base, epoch, in progress, directory: 8 bytes each, then zeros up to a page
//	directory   a vector of entries: type (4 bytes), padding (4), value or address (8), name (128)
//	vector      its elements; the 8 bytes before them begin with their number (4 bytes)
//	counters    a vector of addresses, one for each thread, of vectors of counters
//	symlink     an entry with the indexes of another entry (4 bytes) and of a counter in each of its vectors (4)
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
	symlinkEntry  = 6
)

// newSegment listens at a path. A file from an earlier life is replaced.
func newSegment(path string) (*segment, error) {
	fd, err := unix.MemfdCreate("stat segment", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("stats segment: %w", err)
	}
	s := &segment{file: os.NewFile(uintptr(fd), "stat segment"), half: 1}
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
}

// write makes entries the content.
func (s *segment) write(entries []entryOf) error {
	half := 1 - s.half
	b := &segmentBuilder{start: uint64(segmentPage + half*segmentHalf)}
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
		if _, err := s.file.WriteAt(words(2, segmentBase, s.epoch, inProgress, directory), 0); err != nil {
			return err
		}
	}
	return nil
}

// A segmentBuilder builds the content of one half.
type segmentBuilder struct {
	start uint64 // offset of the half in the segment
	b     []byte
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
		one := make([]byte, size)
		binary.NativeEndian.PutUint32(one, kind)
		binary.NativeEndian.PutUint64(one[8:], data)
		copy(one[nameAt:size-1], e.name)
		all = append(all, one...)
	}
	return s.vector(len(entries), all)
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
		return namesEntry, s.vectors(len(e.names), func(i int) (int, []byte) {
			return len(e.names[i]) + 1, append([]byte(e.names[i]), 0)
		})
	case e.link != nil:
		return symlinkEntry, uint64(e.link[0]) | uint64(e.link[1])<<32
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

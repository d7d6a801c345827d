// Package stats reads VPP's stats segment: memory that VPP shares with each client of its
// stats socket.
//
//	err := stats.Read(ctx, socket, func(s *stats.Segment) error {
//		return s.Entries(func(e stats.Entry) error { ... })
//	})
//	counters, err := stats.Interfaces(ctx, socket, map[uint32]bool{1: true})
//
// The content of the segment is not trusted: invalid content gives an error, a read takes a
// second at most, and it needs little memory. What a caller keeps of it, the caller bounds.
package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// Counters are the counters of one interface, summed over all VPP threads.
type Counters = interfaces.InterfaceState_Statistics

// longest is how long a read takes at most: VPP answers at once, and changes the directory of the
// segment rarely.
const longest = time.Second

// ErrNone is the reason for missing counters: VPP does not run, or has no stats segment.
var ErrNone = errors.New("VPP has no stats segment")

// Read opens the segment for collect, which gets it anew each time that VPP changed it meanwhile,
// and then begins from nothing. A call opens the segment for itself: the memory of a restarted VPP
// would be stale. It takes a second at most.
func Read(ctx context.Context, socket string, collect func(*Segment) error) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	file, err := open(ctx, socket)
	if err != nil {
		return fmt.Errorf("stats segment: %w", err)
	}
	defer file.Close()
	size, err := sizeOf(file)
	if err == nil {
		err = ReadFrom(ctx, file, size, collect)
	}
	if err != nil {
		return fmt.Errorf("stats segment of %s: %w", socket, err)
	}
	return nil
}

// sizeOf returns the size of a file in memory. A file elsewhere is refused: a read of it could
// take forever.
func sizeOf(file *os.File) (size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("it is of type %v; expected memory", info.Mode()&fs.ModeType)
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &system); err != nil {
		return 0, err
	}
	if in := uint32(system.Type); in != unix.TMPFS_MAGIC && in != unix.HUGETLBFS_MAGIC {
		return 0, fmt.Errorf("it is a file in a file system of type %#x; expected memory", in)
	}
	return info.Size(), nil
}

// Interfaces returns the counters of the interfaces in of, by sw_if_index.
// Interfaces without counters are omitted.
func Interfaces(ctx context.Context, socket string, of map[uint32]bool) (counters map[uint32]*Counters, err error) {
	err = Read(ctx, socket, func(s *Segment) error {
		counters = map[uint32]*Counters{}
		return s.interfaces(of, counters)
	})
	if err != nil {
		return nil, err
	}
	return counters, nil
}

// interfaces adds up the counters of each thread of VPP.
func (s *Segment) interfaces(of map[uint32]bool, out map[uint32]*Counters) error {
	var limit uint64
	for index := range of {
		limit = max(limit, uint64(index)+1)
	}
	return s.Entries(func(e Entry) error {
		count := counting[string(e.Name)]
		if count == nil {
			return nil
		}
		return s.Counters(e, limit, func(_, index uint64, n [2]uint64) error {
			at := uint32(index)
			if !of[at] {
				return nil
			}
			if out[at] == nil {
				out[at] = &Counters{}
			}
			count(out[at], n)
			return nil
		})
	})
}

// open connects to the socket. VPP answers with a message that has the segment's file.
func open(ctx context.Context, socket string) (*os.File, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unixpacket", socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	case err != nil:
		return nil, err
	}
	defer connection.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := connection.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	b, oob := make([]byte, 64), make([]byte, unix.CmsgSpace(8*4))
	_, n, _, _, err := connection.(*net.UnixConn).ReadMsgUnix(b, oob) //nolint:forcetypeassert // it is one of a unix socket
	// VPP's message has no bytes beside the file. Package net reports that as io.EOF.
	if err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
		return nil, fmt.Errorf("receiving the segment from %s: %w", socket, err)
	}
	fds, err := received(oob[:n])
	if err == nil && len(fds) == 1 {
		return os.NewFile(uintptr(fds[0]), socket), nil
	}
	for _, fd := range fds {
		err = errors.Join(err, unix.Close(fd))
	}
	return nil, errors.Join(fmt.Errorf("%s sent %d files; expected one", socket, len(fds)), err)
}

// received returns the files of a message.
func received(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		some, wrong := unix.ParseUnixRights(&messages[i])
		err = errors.Join(err, wrong)
		fds = append(fds, some...)
	}
	return fds, err
}

// counting maps each counter of VPP to the field that it is added to. A combined
// counter has packets and bytes.
var counting = map[string]func(c *Counters, n [2]uint64){
	"/if/rx":        func(c *Counters, n [2]uint64) { c.InPackets += n[0]; c.InBytes += n[1] },
	"/if/tx":        func(c *Counters, n [2]uint64) { c.OutPackets += n[0]; c.OutBytes += n[1] },
	"/if/drops":     func(c *Counters, n [2]uint64) { c.DropPackets += n[0] },
	"/if/punt":      func(c *Counters, n [2]uint64) { c.PuntPackets += n[0] },
	"/if/ip4":       func(c *Counters, n [2]uint64) { c.Ipv4Packets += n[0] },
	"/if/ip6":       func(c *Counters, n [2]uint64) { c.Ipv6Packets += n[0] },
	"/if/rx-no-buf": func(c *Counters, n [2]uint64) { c.InNobufPackets += n[0] },
	"/if/rx-miss":   func(c *Counters, n [2]uint64) { c.InMissPackets += n[0] },
	"/if/rx-error":  func(c *Counters, n [2]uint64) { c.InErrorPackets += n[0] },
	"/if/tx-error":  func(c *Counters, n [2]uint64) { c.OutErrorPackets += n[0] },
}

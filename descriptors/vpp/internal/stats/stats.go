// Package stats reads interface counters from VPP's stats segment: memory that VPP
// shares with each client of its stats socket. The content of the segment is not
// trusted: invalid content gives an error, and the memory in use depends only on the
// requested interfaces.
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

// longest is how long Interfaces takes at most: VPP answers at once, and changes the
// directory of the segment rarely.
const longest = time.Second

// Interfaces returns the counters of the interfaces in of, by sw_if_index.
// Interfaces without counters are omitted. It opens the segment for each call: the
// memory of a restarted VPP would be stale. It takes a second at most.
func Interfaces(ctx context.Context, socket string, of map[uint32]bool) (map[uint32]*Counters, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	file, err := open(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("stats segment: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is of type %v; expected memory", info.Mode()&fs.ModeType)
	}
	var counters map[uint32]*Counters
	if err == nil {
		counters, err = read(ctx, file, info.Size(), of)
	}
	if err != nil {
		return nil, fmt.Errorf("stats segment of %s: %w", socket, err)
	}
	return counters, nil
}

// open connects to the socket. VPP answers with a message that has the segment's file.
func open(ctx context.Context, socket string) (*os.File, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unixpacket", socket)
	if err != nil {
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

package siege

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
)

const (
	frameHeader = 16 // bytes before each message on VPP's socket
	frameSize   = 8  // where in it the size of the message is
)

// hostileVPP stands between the agent and a simulated VPP, and corrupts some of the answers:
// messages are cut short, so that counts exceed them, and numbers become as large as possible.
func hostileVPP(ctx context.Context, t *target) error {
	return serve(ctx, t.plane, func(n int, near net.Conn) {
		far, err := (&net.Dialer{}).DialContext(ctx, "unix", t.behind)
		if err != nil {
			return // the simulated VPP ends with the test
		}
		defer far.Close()
		go func() {
			_, _ = io.Copy(far, near) // ends with either connection
			far.Close()
		}()
		corrupt(near, far, rand.New(rand.NewPCG(uint64(n), 1)), t.struck)
	})
}

// corrupt carries messages, of which it corrupts one in some, and gives up with the connection.
func corrupt(to io.Writer, from io.Reader, random *rand.Rand, struck func()) {
	sound := random.IntN(40) // so many messages are left alone first
	for count := 0; ; count++ {
		header := make([]byte, frameHeader)
		if _, err := io.ReadFull(from, header); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint32(header[frameSize:]))
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		frame := slices.Concat(header, message)
		if count == sound || count > sound && random.IntN(3) == 0 {
			frame = spoiled(frame, random)
			struck()
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

func spoiled(frame []byte, random *rand.Rand) []byte {
	size := len(frame) - frameHeader
	switch random.IntN(5) {
	case 0: // it is cut short
		frame = frame[:frameHeader+random.IntN(size+1)]
		binary.BigEndian.PutUint32(frame[frameSize:], uint32(len(frame)-frameHeader))
	case 1: // some number of it is as large as can be
		for i := range min(4, max(0, size-6)) {
			frame[frameHeader+6+(random.IntN(size-6)+i)%(size-6)] = 0xff
		}
	case 2: // the end is as large as can be
		for i := max(frameHeader+6, len(frame)-8); i < len(frame); i++ {
			frame[i] = 0xff
		}
	case 3: // more is announced than comes
		binary.BigEndian.PutUint32(frame[frameSize:], []uint32{0xffffffff, 64 << 20, uint32(size) + 1}[random.IntN(3)])
	case 4: // it comes twice
		frame = append(frame, frame...)
	}
	return frame
}

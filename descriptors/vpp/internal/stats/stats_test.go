package stats

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// base is where the segments of the tests begin in the memory of their VPP.
const base = 0x7f00_0000_0000

// A builder makes a segment. What it returns are addresses.
type builder struct{ b []byte }

func newBuilder() *builder { return &builder{make([]byte, headerSize)} }

func (s *builder) vector(elements ...[]byte) (address uint64) {
	s.b = binary.NativeEndian.AppendUint64(s.b, uint64(len(elements)))
	address = base + uint64(len(s.b))
	s.b = append(s.b, bytes.Join(elements, nil)...)
	return address
}

func words(ws ...uint64) (b []byte) {
	for _, w := range ws {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

func entry(kind uint32, data uint64, name string) []byte {
	b := make([]byte, entrySize)
	binary.NativeEndian.PutUint32(b, kind)
	binary.NativeEndian.PutUint64(b[8:], data)
	copy(b[16:], name)
	return b
}

func (s *builder) finish(directory uint64) []byte {
	copy(s.b, words(version, base, 1, 0, directory))
	return s.b
}

// valid is a segment with two threads and three interfaces.
func valid() []byte {
	s := newBuilder()
	rx := s.vector(
		words(s.vector(words(0, 0), words(1, 100), words(2, 200))),
		words(0),
		words(s.vector(words(0, 0), words(10, 1000))),
	)
	drops := s.vector(words(s.vector(words(0), words(3), words(4))))
	return s.finish(s.vector(
		entry(1, 42, "/sys/heartbeat"), entry(combinedCounters, rx, "/if/rx"), entry(simpleCounters, drops, "/if/drops"),
		entry(simpleCounters, 0, "/if/punt"), entry(9, 1<<40, "/if/names"), entry(6, 1, strings.Repeat("x", nameSize)),
	))
}

func TestRead(t *testing.T) {
	b := valid()
	got, err := read(t.Context(), bytes.NewReader(b), int64(len(b)), map[uint32]bool{1: true, 7: true})
	if err != nil {
		t.Fatal(err)
	}
	want := &Counters{InPackets: 11, InBytes: 1100, DropPackets: 3}
	if len(got) != 1 || !proto.Equal(got[1], want) {
		t.Errorf("read %v, want %v of 1", got, want)
	}
}

// TestReadWrongSegment reads segments that no VPP writes.
func TestReadWrongSegment(t *testing.T) {
	changed := func(offset int, word uint64) []byte {
		b := valid()
		binary.NativeEndian.PutUint64(b[offset:], word)
		return b
	}
	lying := func(n uint64) []byte { // about the length of a thread's counters
		s := newBuilder()
		counters := s.vector(words(1, 2))
		binary.NativeEndian.PutUint64(s.b[counters-base-vectorStart:], n)
		return s.finish(s.vector(entry(combinedCounters, s.vector(words(counters)), "/if/rx")))
	}
	circular := func() []byte { // the vector of threads is among the threads
		s := newBuilder()
		threads := base + uint64(len(s.b)) + vectorStart
		s.vector(words(threads), words(threads))
		return s.finish(s.vector(entry(simpleCounters, threads, "/if/drops")))
	}
	overlapping := func() []byte {
		s := newBuilder()
		thread := words(s.vector(make([][]byte, 1000)...))
		s.b = append(s.b, make([]byte, 8000)...)
		threads := make([][]byte, 1000)
		for i := range threads {
			threads[i] = thread
		}
		return s.finish(s.vector(entry(simpleCounters, s.vector(threads...), "/if/drops")))
	}
	for name, c := range map[string]struct {
		segment []byte
		want    string // in the error; empty: it is read
	}{
		"empty":                        {nil, "reading 40 bytes at 0 of 0"},
		"header cut off":               {valid()[:headerSize-1], "header"},
		"version":                      {changed(0, 1), "its version is 1; expected 2"},
		"garbage":                      {bytes.Repeat([]byte{0xff}, 4096), "its version is"},
		"directory before the segment": {changed(32, 1), "a vector begins at 0x1"},
		"directory in the header":      {changed(32, base), "a vector begins at"},
		"directory after the segment":  {changed(32, math.MaxUint64), "a vector begins at"},
		"base after everything":        {changed(8, math.MaxUint64), "a vector begins at"},
		"cut off":                      {valid()[:len(valid())-1], "bytes are left in the segment"},
		"huge length":                  {lying(math.MaxUint32), "a vector has 4294967295 elements"},
		"length too large by one":      {lying(100), "a vector has 100 elements"},
		"circular":                     {circular(), ""},
		"overlapping vectors":          {overlapping(), "more than its"},
		"wrong type":                   {func() []byte { s := newBuilder(); return s.finish(s.vector(entry(1, 0, "/if/rx"))) }(), "/if/rx: its type is 1"},
	} {
		t.Run(name, func(t *testing.T) {
			of := map[uint32]bool{}
			for i := range uint32(1000) {
				of[i] = true
			}
			_, err := read(t.Context(), bytes.NewReader(c.segment), int64(len(c.segment)), of)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// changing is a segment that VPP changes at each of the first reads of its header.
type changing struct {
	*bytes.Reader
	b      []byte
	word   int // of the header
	before int
}

func (c *changing) ReadAt(b []byte, offset int64) (int, error) {
	n, err := c.Reader.ReadAt(b, offset)
	if offset == 0 && c.before != 0 {
		c.before--
		b[8*c.word] += byte(c.before)
	}
	return n, err
}

// TestReadWhileVPPChangesIt has the epoch, or the mark of a change, settle and not settle.
func TestReadWhileVPPChangesIt(t *testing.T) {
	for _, word := range []int{2, 3} {
		for _, settles := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), longest)
				defer cancel()
				b := valid()
				c := &changing{bytes.NewReader(b), b, word, -1}
				if settles {
					c.before = 10
				}
				begun := time.Now()
				got, err := read(ctx, c, int64(len(b)), map[uint32]bool{1: true})
				switch {
				case settles && (err != nil || len(got) != 1):
					t.Errorf("word %d: read %v: %v", word, got, err)
				case !settles && (!errors.Is(err, errChanging) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != longest):
					t.Errorf("word %d: after %v: %v", word, time.Since(begun), err)
				}
			})
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(valid())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize {
			clear(b[24:32]) // otherwise the change never ends
		}
		of := map[uint32]bool{0: true, 1: true, math.MaxUint32: true}
		got, err := read(t.Context(), bytes.NewReader(b), int64(len(b)), of)
		if (got == nil) != (err != nil) || len(got) > len(of) {
			t.Errorf("read %v: %v", got, err)
		}
	})
}

// serve has a socket send files to each client.
func serve(t *testing.T, fds ...int) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "stats.sock")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(fds...), nil)
			_ = c.Close()
		}
	}()
	return socket
}

func memory(t *testing.T, b []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("segment", 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "segment")
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestInterfaces receives segments from a socket: a good one, and what is none.
func TestInterfaces(t *testing.T) {
	of := map[uint32]bool{1: true, 2: true}
	good := memory(t, valid())
	socket := serve(t, int(good.Fd()))
	got, err := Interfaces(t.Context(), socket, of)
	if err != nil || len(got) != 2 || got[2].GetInBytes() != 200 {
		t.Errorf("read %v: %v", got, err)
	}
	if err := good.Truncate(100); err != nil {
		t.Fatal(err)
	}
	if got, err := Interfaces(t.Context(), socket, of); err == nil || got != nil {
		t.Errorf("read %v of a truncated segment: %v", got, err)
	}
	vast := memory(t, valid())
	if err := vast.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	if got, err := Interfaces(t.Context(), serve(t, int(vast.Fd())), of); err != nil || len(got) != 2 {
		t.Errorf("read %v of a vast segment: %v", got, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for socket, want := range map[string]string{
		serve(t, int(r.Fd())):                     "expected memory",
		serve(t):                                  "sent 0 files; expected one",
		serve(t, int(vast.Fd()), int(vast.Fd())):  "sent 2 files; expected one",
		filepath.Join(t.TempDir(), "nobody.sock"): "no such file",
	} {
		if _, err := Interfaces(t.Context(), socket, of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

package stats

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/testkit"
)

// readInterfaces reads counters as Interfaces does.
func readInterfaces(ctx context.Context, file io.ReaderAt, size int, of map[uint32]bool) (out map[uint32]*Counters, err error) {
	err = ReadFrom(ctx, file, int64(size), func(s *Segment) error {
		out = map[uint32]*Counters{}
		return s.interfaces(of, out)
	})
	return out, err
}

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

// chars returns the elements of a vector of characters.
func chars(text string) (out [][]byte) {
	for i := range len(text) {
		out = append(out, []byte{text[i]})
	}
	return out
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
		entry(1, 42, "/sys/heartbeat"), entry(combinedType, rx, "/if/rx"), entry(simpleType, drops, "/if/drops"),
		entry(simpleType, 0, "/if/punt"), entry(9, 1<<40, "/if/names"), entry(6, 1, strings.Repeat("x", nameSize)),
	))
}

func TestRead(t *testing.T) {
	b := valid()
	got, err := readInterfaces(t.Context(), bytes.NewReader(b), len(b), map[uint32]bool{1: true, 7: true})
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
		return s.finish(s.vector(entry(combinedType, s.vector(words(counters)), "/if/rx")))
	}
	circular := func() []byte { // the vector of threads is among the threads
		s := newBuilder()
		threads := base + uint64(len(s.b)) + vectorStart
		s.vector(words(threads), words(threads))
		return s.finish(s.vector(entry(simpleType, threads, "/if/drops")))
	}
	overlapping := func() []byte {
		s := newBuilder()
		thread := words(s.vector(make([][]byte, 1000)...))
		s.b = append(s.b, make([]byte, 8000)...)
		threads := make([][]byte, 1000)
		for i := range threads {
			threads[i] = thread
		}
		return s.finish(s.vector(entry(simpleType, s.vector(threads...), "/if/drops")))
	}
	for name, c := range map[string]struct {
		segment []byte
		want    string // in the error; empty: it is read
	}{
		"empty":                        {nil, "reading 48 bytes at 0 of 0"},
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
		"wrong type":                   {func() []byte { s := newBuilder(); return s.finish(s.vector(entry(1, 0, "/if/rx"))) }(), "/if/rx: it has no counters"},
	} {
		t.Run(name, func(t *testing.T) {
			of := map[uint32]bool{}
			for i := range uint32(1000) {
				of[i] = true
			}
			_, err := readInterfaces(t.Context(), bytes.NewReader(c.segment), len(c.segment), of)
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
				got, err := readInterfaces(ctx, c, len(b), map[uint32]bool{1: true})
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

// all reads everything, follows each link, and returns what it has read.
func all(s *Segment) (out []string, err error) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	counters := func(e Entry) error {
		return s.Counters(e, NoLimit, func(thread, index uint64, n [2]uint64) error {
			say("  %d %d %v", thread, index, n)
			return nil
		})
	}
	err = s.Entries(func(e Entry) error {
		say("%s %d", e.Name, e.Kind)
		switch e.Kind {
		case Scalar:
			say("  %d", e.Value())
		case Simple, Combined:
			return counters(e)
		case Names:
			return s.Names(e, func(index uint64, name string) error {
				say("  %d %s", index, name)
				return nil
			})
		case Link:
			target, err := s.Entry(e.Target)
			say("  %d of", e.Index)
			if err != nil || target.Kind != Simple {
				return err
			}
			return counters(target)
		case Other:
		}
		return nil
	})
	return out, err
}

// kinds is a segment with an entry of each kind, in the layout of 22.02 or of later releases.
func kinds(old bool) []byte {
	s := newBuilder()
	errs := s.vector(words(s.vector(words(5), words(6))), words(0))
	names := s.vector(words(s.vector(chars("local0\x00")...)), words(0), words(s.vector(chars("memif1/0")...)))
	if old {
		b := s.finish(s.vector(entry(1, 7, "/sys/heartbeat"), entry(5, names, "/if/names"), entry(6, 0, ""), entry(4, 1, "/err/a/b"), entry(7, 2<<32, "/if/link")))
		binary.NativeEndian.PutUint64(b[5*8:], errs)
		return b
	}
	return s.finish(s.vector(
		entry(1, 7, "/sys/heartbeat"), entry(4, names, "/if/names"), entry(5, 0, ""), entry(6, 4|1<<32, "/err/a/b"), entry(2, errs, "/node/errors"),
		entry(6, 5, "/a/link/to/itself"), entry(7, 1<<60, "/a/histogram"), entry(9, 8, "/a/gauge"),
	))
}

// TestKinds reads each kind of entry, also of the oldest release, which has other numbers.
func TestKinds(t *testing.T) {
	for old, want := range map[bool]string{
		true: "/sys/heartbeat 1|  7|/if/names 4|  0 local0|  2 memif1/0| 0|/err/a/b 5|  1 of|  0 0 [5 0]|  0 1 [6 0]|/if/link 5|  2 of",
		false: "/sys/heartbeat 1|  7|/if/names 4|  0 local0|  2 memif1/0| 0|/err/a/b 5|  1 of|  0 0 [5 0]|  0 1 [6 0]|/node/errors 2|  0 0 [5 0]|  0 1 [6 0]|" +
			"/a/link/to/itself 5|  0 of|/a/histogram 0|/a/gauge 1|  8",
	} {
		b := kinds(old)
		var got []string
		err := ReadFrom(t.Context(), bytes.NewReader(b), int64(len(b)), func(s *Segment) (err error) {
			s.left *= 2 // the errors are read for their link, too
			got, err = all(s)
			return err
		})
		if text := strings.Join(got, "|"); err != nil || text != want {
			t.Errorf("22.02 %t: %v\n%s\nwant\n%s", old, err, text, want)
		}
	}
}

// onDisk returns a file that is not in memory.
func onDisk(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Open("stats.go")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// TestInterfaces receives segments from a socket: a good one, and what is none.
func TestInterfaces(t *testing.T) {
	of := map[uint32]bool{1: true, 2: true}
	good := testkit.MemoryFile(t, valid(), int64(len(valid())))
	socket := testkit.ServeFiles(t, int(good.Fd()))
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
	vast := testkit.MemoryFile(t, valid(), 1<<40)
	if got, err := Interfaces(t.Context(), testkit.ServeFiles(t, int(vast.Fd())), of); err != nil || len(got) != 2 {
		t.Errorf("read %v of a vast segment: %v", got, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for socket, want := range map[string]string{
		testkit.ServeFiles(t, int(r.Fd())):                    "expected memory",
		testkit.ServeFiles(t, int(onDisk(t).Fd())):            "expected memory",
		testkit.ServeFiles(t):                                 "sent 0 files; expected one",
		testkit.ServeFiles(t, int(vast.Fd()), int(vast.Fd())): "sent 2 files; expected one",
		filepath.Join(t.TempDir(), "nobody.sock"):             "no such file",
	} {
		if _, err := Interfaces(t.Context(), socket, of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestLinkOutside follows a link to an entry that does not exist.
func TestLinkOutside(t *testing.T) {
	s := newBuilder()
	b := s.finish(s.vector(entry(linkType, math.MaxUint64, "/err/a/b")))
	err := ReadFrom(t.Context(), bytes.NewReader(b), int64(len(b)), func(s *Segment) error {
		_, err := all(s)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "a link leads to entry 4294967295 of 1") {
		t.Errorf("error %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(valid())
	f.Add(kinds(true))
	f.Add(kinds(false))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize {
			clear(b[24:32]) // otherwise the change never ends
		}
		of := map[uint32]bool{0: true, 1: true, math.MaxUint32: true}
		got, err := readInterfaces(t.Context(), bytes.NewReader(b), len(b), of)
		if err == nil && got == nil || len(got) > len(of) {
			t.Errorf("read %v: %v", got, err)
		}
		_ = ReadFrom(t.Context(), bytes.NewReader(b), int64(len(b)), func(s *Segment) error {
			out, err := all(s)
			if len(out) > 2*len(b)+10 {
				t.Errorf("%d lines of %d bytes", len(out), len(b))
			}
			return err
		})
	})
}

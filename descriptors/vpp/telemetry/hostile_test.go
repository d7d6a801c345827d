package telemetry

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/stats"
	"github.com/keyplane/keyplane/internal/testkit"
)

// base is where the segments of the tests begin in the memory of their VPP.
const base = 0x7f00_0000_0000

// words returns 64-bit numbers in the byte order of the machine.
func words(ws ...uint64) (b []byte) {
	for _, w := range ws {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

// An entry is one of the directory.
type entry struct {
	kind uint32
	data uint64
	name string
}

// segment returns a segment with a vector of one address, or a few, behind the directory. The
// directory ends at byte 4096, and the vector begins there.
func segment(entries []entry, vector ...uint64) []byte {
	b := words(2, base, 1, 0, base+56, 0, uint64(len(entries)))
	for _, e := range entries {
		one := make([]byte, 144)
		binary.NativeEndian.PutUint32(one, e.kind)
		binary.NativeEndian.PutUint64(one[8:], e.data)
		copy(one[16:], e.name)
		b = append(b, one...)
	}
	return append(b, append(make([]byte, 4096-8-len(b)), words(append([]uint64{uint64(len(vector))}, vector...)...)...)...)
}

// hostile are segments that no VPP writes.
func hostile() map[string][]byte {
	const many = math.MaxUint32
	long := segment([]entry{{4, base + 4096, "/if/names"}, {2, base + 4096, "/if/drops"}, {2, base + 4096, "/sys/node/calls"}, {2, base + 4096, "/mem/main heap"}})
	binary.NativeEndian.PutUint64(long[4096-8:], many)
	links := segment([]entry{{6, many << 32, "/err/a/b"}, {6, 1, "/err/c/d"}, {6, 2<<32 | 3, "/err/e/f"}, {2, base + 4096, "/node/errors"}}, base+4096)
	binary.NativeEndian.PutUint64(links[4096-8:], many)
	return map[string][]byte{
		"vectors with 4,294,967,295 elements":           long,
		"a link to itself, and some to a vast vector":   links,
		"threads that are the vector of threads":        segment([]entry{{3, base + 4096, "/if/rx"}, {2, base + 4096, "/sys/node/calls"}}, base+4096, base+4096, base+4096),
		"the vast index of a counter of the last entry": segment([]entry{{6, many << 32, "/err/a/b"}}),
	}
}

// serve offers a segment, with zeros behind it up to a size.
func serve(t *testing.T, b []byte, size int64) (socket string) {
	t.Helper()
	return testkit.ServeFiles(t, int(testkit.MemoryFile(t, b, size).Fd()))
}

// TestHostileSegments reads segments that claim to be huge. The memory is bounded.
func TestHostileSegments(t *testing.T) {
	for name, b := range hostile() {
		p := New(Options{Socket: serve(t, b, 1<<40)})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := p.Read(t.Context())
		runtime.ReadMemStats(&after)
		t.Logf("%s: %v", name, err)
		if got := after.TotalAlloc - before.TotalAlloc; got > 8*mostBytes {
			t.Errorf("%s: %d MiB were allocated", name, got>>20)
		}
	}
}

// TestTooMany reads a segment with names of more interfaces than the agent keeps. The time of a reading is not
// bounded here, as that of Poller.Read is: to look at so many takes long on a machine without a free processor.
func TestTooMany(t *testing.T) {
	b := segment([]entry{{2, base + 4096, "/if/drops"}}, base+8192)
	b = append(b, make([]byte, 8192-8-len(b))...)
	b = append(b, words(1<<20)...)
	b = append(b, make([]byte, 1<<24-len(b))...)
	err := stats.ReadFrom(t.Context(), bytes.NewReader(b), int64(len(b)), func(s *stats.Segment) error {
		_, err := collect(s, Groups())
		return err
	})
	if !errors.Is(err, ErrTooMany) {
		t.Errorf("error %v", err)
	}
}

// TestFrozenVPP reads from a VPP that accepts connections and sends nothing. Each reading ends
// with its context, also one that waits for another.
func TestFrozenVPP(t *testing.T) {
	accepted := make(chan *net.UnixConn, 2)
	p := New(Options{Socket: testkit.ServePackets(t, func(c *net.UnixConn) { accepted <- c })})
	first := make(chan error, 1)
	go func() {
		_, err := p.Read(context.Background(), Memory)
		first <- err
	}()
	c := <-accepted
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Read(ctx, Memory); !errors.Is(err, ErrBusy) {
		t.Errorf("a reading that waits: %v", err)
	}
	if err := <-first; err == nil {
		t.Error("VPP sent nothing, and was read")
	}
}

// TestTooManyMetrics shows the metrics of 10,000 interfaces and of no more, and an error.
func TestTooManyMetrics(t *testing.T) {
	for interfaces, want := range map[int]int{mostMetrics / 12: mostMetrics, mostMetrics/12 + 5: mostMetrics + 1} {
		p := New(Options{})
		p.last.Store(&polled{Snapshot: Snapshot{Interfaces: make([]InterfaceCounters, interfaces)}})
		out := make(chan prometheus.Metric, mostMetrics+100)
		p.Collector("vpp1").Collect(out)
		if len(out) != want {
			t.Errorf("%d interfaces: %d metrics, want %d", interfaces, len(out), want)
		}
	}
}

// TestNamesThatAreNotUTF8 gathers the metrics of a segment with the name "\xff". Prometheus accepts only UTF-8.
func TestNamesThatAreNotUTF8(t *testing.T) {
	p := New(Options{Socket: serve(t, segment([]entry{{1, 7, "/buffer-pools/\xff/used"}}), 1<<20)})
	got, err := p.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Buffers) != 1 || got.Buffers[0].Name != "\ufffd" {
		t.Errorf("the buffers are %+v; expected one pool with the name U+FFFD", got.Buffers)
	}
	// Also a name that comes in another way must not end the process.
	got.Buffers = append(got.Buffers, BufferPool{Name: "\xff"})
	p.last.Store(&polled{Snapshot: got})
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.Collector("vpp1"))
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("error %v; expected one about UTF-8", err)
	}
}

// FuzzCollect reads segments of any content.
func FuzzCollect(f *testing.F) {
	for _, b := range hostile() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 48 {
			clear(b[24:32]) // otherwise the change never ends
		}
		_ = stats.ReadFrom(t.Context(), bytes.NewReader(b), int64(len(b)), func(s *stats.Segment) error {
			got, err := collect(s, Groups())
			if n := len(got.Nodes) + len(got.Buffers) + len(got.Memory) + len(got.Interfaces) + len(got.Runtime); n > len(b) {
				t.Errorf("%d results of %d bytes", n, len(b))
			}
			return err
		})
	})
}

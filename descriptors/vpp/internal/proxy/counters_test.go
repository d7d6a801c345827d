package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"go.fd.io/govpp/core"
	"go.fd.io/govpp/proxy"

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

// segment returns a segment with one entry, /if/drops. What follows begins at byte 200.
func segment(kind, data uint64, following ...uint64) []byte {
	name := make([]byte, 128)
	copy(name, "/if/drops")
	b := append(words(2, base, 1, 0, base+56, 0, 1, kind, data), name...)
	return append(b, words(following...)...)
}

// TestHostileCounters reads segments that would end the process in GoVPP's own client.
func TestHostileCounters(t *testing.T) {
	const simple, link = 2, 6
	for name, c := range map[string]struct {
		segment []byte
		want    string // in the error; empty: it is read
	}{
		// The word before a vector is the number of its elements.
		"threads of different lengths": {segment(simple, base+208, 2, base+232, base+256, 2, 7, 8, 1, 9), "inconsistent"},
		"a vast vector":                {segment(simple, base+208, 1, base+224, 100_000_000), "VPP has too many counters"},
		"a link to itself":             {segment(link, 0xffff_ffff<<32), ""},
	} {
		connection, err := core.ConnectStats(counters{testkit.ServeFiles(t, int(testkit.MemoryFile(t, c.segment, 1<<30).Fd()))})
		if err != nil {
			t.Fatal(err)
		}
		// On a busy machine the second that one reading has may be too short.
		for again := true; again; again = errors.Is(err, context.DeadlineExceeded) {
			_, err = (&Server{stats: connection}).count(proxy.StatsRequest{StatsType: "interface"})
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		connection.Disconnect()
	}
}

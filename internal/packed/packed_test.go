package packed_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/packed"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// addresses is the text of a list that repeats itself.
func addresses(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `"10.200.%d.%d/24",`, i/250, i%250)
	}
	return b.Bytes()
}

// noise is a text that cannot be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(b) // never fails
	return b
}

func TestTextsComeBack(t *testing.T) {
	var texts []packed.Text
	all := [][]byte{nil, {}, []byte("small"), addresses(10_000), addresses(10_001), noise(packed.Large - 1), noise(packed.Large), make([]byte, packed.Large), make([]byte, packed.Large+1)}
	for _, b := range all {
		texts = append(texts, packed.Of(b))
	}
	for i, text := range texts {
		if got := text.Bytes(); !bytes.Equal(got, all[i]) || (got == nil) != (all[i] == nil) {
			t.Errorf("text %d of %d bytes came back with %d bytes", i, len(all[i]), len(got))
		}
		for j, other := range texts {
			if same := bytes.Equal(all[i], all[j]); text.Equal(other) != same {
				t.Errorf("texts %d and %d: equal is %t; want %t", i, j, !same, same)
			}
		}
	}
}

func TestAnyTextComesBack(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "some")
		b := bytes.Repeat(some, rapid.IntRange(0, 2*packed.Large/len(some)).Draw(t, "times"))
		if got := packed.Of(b).Bytes(); !bytes.Equal(got, b) {
			t.Fatalf("%d bytes came back as %d", len(b), len(got))
		}
	})
}

// TestLargeTextsTakeLittleMemory measures what a kept text allocates, beside the packer's own.
func TestLargeTextsTakeLittleMemory(t *testing.T) {
	b := addresses(100_000)
	result := testing.Benchmark(func(bench *testing.B) {
		bench.ReportAllocs()
		for bench.Loop() {
			packed.Of(b)
		}
	})
	if got := result.AllocedBytesPerOp(); got > int64(len(b)/2) {
		t.Errorf("a text of %d bytes takes %d", len(b), got)
	}
}

func BenchmarkPack(b *testing.B) {
	text := addresses(100_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		packed.Of(text)
	}
}

func BenchmarkUnpack(b *testing.B) {
	raw := addresses(100_000)
	text := packed.Of(raw)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		text.Bytes()
	}
}

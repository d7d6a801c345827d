package memory_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/scheduler/memory"
)

// BenchmarkSave is what a transaction of one value waits for its memory, while that is
// written behind.
func BenchmarkSave(b *testing.B) {
	f, err := memory.Open(filepath.Join(b.TempDir(), "applied.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	var running errgroup.Group
	running.Go(func() error { return f.Run(b.Context()) })
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i)
	}
	i := 0
	for b.Loop() {
		i++
		if err := f.Save(map[string][]byte{keys[i%len(keys)]: {}}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

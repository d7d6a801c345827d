package statestore_test

import (
	"fmt"
	"maps"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/statestore"
)

// BenchmarkSave is what an operation of one value waits for its memory.
func BenchmarkSave(b *testing.B) {
	s := open(b, b.TempDir(), statestore.Options{})
	var running errgroup.Group
	running.Go(func() error { return s.Run(b.Context()) })
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i)
	}
	i := 0
	for b.Loop() {
		i++
		if err := s.Save(maps.All(map[string][]byte{keys[i%len(keys)]: {}})); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

package faults

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

func TestMain(m *testing.M) {
	if life := os.Getenv(lifeVariable); life != "" {
		if err := Live(context.Background(), life, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	redis.LogTo(slog.New(slog.DiscardHandler))
	testkit.RunManyAtOnce()
	os.Exit(scratch.Main(m.Run))
}

// options are those of this package's tests.
type options struct {
	full  *bool
	every *bool
	table *string
}

var opts = options{
	full:  flag.Bool("faults.full", false, "faults in full size and length"),
	every: flag.Bool("faults.every", false, "every fault of every store, and not just of one"),
	table: flag.String("faults.table", "", "a Markdown file to write the results into"),
}

func TestMatrix(t *testing.T) {
	var results Results
	if *opts.table != "" {
		t.Cleanup(func() {
			if err := Put(*opts.table, results.Markdown(stores.Kinds(), faults())); err != nil {
				t.Error(err)
			}
		})
	}
	chosen := selection(draw.Seed(t))
	if !*opts.full {
		t.Parallel()
	}
	for _, k := range stores.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			if !*opts.full { // else there are large faults, beside which no other store may run
				t.Parallel()
			}
			for _, f := range faults() {
				if f.applies(k) && (*opts.full || *opts.every && !f.Large || chosen[f.Name] == k.Name) {
					t.Run(f.Name, func(t *testing.T) { cell(t, &results, k, f) })
				}
			}
		})
	}
}

// selection is one store for each fault that is not large.
func selection(seed uint64) map[string]string {
	choose := rand.New(rand.NewPCG(seed, 1))
	chosen := map[string]string{}
	for _, f := range faults() {
		able := slices.DeleteFunc(stores.Kinds(), func(k stores.Kind) bool { return !f.applies(k) })
		if len(able) > 0 && !f.Large {
			chosen[f.Name] = able[choose.IntN(len(able))].Name
		}
	}
	return chosen
}

// cell tries one. What is large has the machine to itself.
func cell(t *testing.T, results *Results, k stores.Kind, f Fault) {
	if !f.Large {
		t.Parallel()
	}
	scale := small()
	if *opts.full {
		scale = full()
	}
	seed := draw.Seed(t)
	var took time.Duration
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again: go test ./internal/faults -run '%s' -args -faults.every -rapid.seed=%d", t.Name(), seed)
			t.Logf("failing seed of %s: as a regular case, write this to a file of testdata/seeds:\nstore: %s\nfault: %s\nseed: %d", t.Name(), k.Name, f.Name, seed)
		}
		if !t.Skipped() {
			results.Add(k.Name, f.Name, took, t.Failed())
		}
	})
	took = play(t, k, f, scale, seed)
	t.Logf("right again after %v", took)
}

// Package draw runs tests of random cases. It is test code.
//
// A test draws the same cases in each run and on each machine: its seeds are made of its name. Nothing else has a say:
// failure files, which git ignores, are neither written nor replayed.
//
//	func TestSort(t *testing.T) {
//		draw.Check(t, func(rt *rapid.T) { ... }, 8213467)
//	}
//
// The numbers at the end are regular cases: seeds that have failed once. They run first.
//
// With KEYPLANE_EXPLORE=10s in the environment, each test draws from fresh seeds for 10 s instead, as make explore does.
// A test that fails prints its seed in the form of a regular case. A seed stands for a case only as long as the test
// draws the same values in the same order. So a fault that was found this way also gets a test without chance.
//
// With -rapid.seed=N a test draws the case of this seed alone, and -rapid.checks says how many cases Check draws
// instead of 100, and Few in proportion.
package draw

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit"
)

// Variable is the variable of the environment that makes tests explore: how long each of them draws from fresh seeds.
const Variable = "KEYPLANE_EXPLORE"

// Check fails the test if rapid finds a case, or a regular case is one, in which the property does not hold.
func Check(t *testing.T, property func(*rapid.T), regular ...uint64) {
	t.Helper()
	r, at := rulesOf(t), place()
	for seed := range r.seeds(t.Name(), r.checks, regular) {
		r.check(t, "Check", property, seed, at)
	}
}

// Few is Check for a property that takes long to check, such as one of a kernel or of VPP: it draws so many cases where Check draws
// 100. make explore draws more.
func Few(t *testing.T, cases int, property func(*rapid.T), regular ...uint64) {
	t.Helper()
	r, at := rulesOf(t), place()
	for seed := range r.seeds(t.Name(), (cases*r.checks+99)/100, regular) {
		r.check(t, "Few", property, seed, at)
	}
}

// Each runs a test with each regular seed, and with one that is made of its name. The test draws everything from this seed.
func Each(t *testing.T, test func(t *testing.T, seed uint64), regular ...uint64) {
	t.Helper()
	at := place()
	for seed := range rulesOf(t).seeds(t.Name(), 1, regular) {
		passed := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Cleanup(func() { report(t, "Each", seed, at) })
			test(t, seed)
		})
		if !passed {
			t.FailNow() // the next seed finds the same fault
		}
	}
}

// Seed returns the seed of a test that draws once, and keeps regular cases in a form of its own.
func Seed(t *testing.T) uint64 {
	t.Helper()
	for seed := range rulesOf(t).seeds(t.Name(), 1, nil) {
		return seed
	}
	panic("there is always a seed")
}

// The rules of a run are its flags and its environment.
type rules struct {
	checks  int           // of each property
	seed    uint64        // the only one; 0: all
	explore time.Duration // from fresh seeds; 0: from fixed ones
	err     error

	setting sync.Mutex // guards rapid's flags from their setting until rapid has read them
}

var theRules = sync.OnceValue(func() *rules {
	r := &rules{checks: valueOf[int]("rapid.checks"), seed: valueOf[uint64]("rapid.seed")}
	one := "1"
	if testing.Short() {
		one = "5" // which rapid divides by 5
	}
	// Each case is a check of its own, so that its seed is known however it fails.
	r.err = cmp.Or(flag.Set("rapid.checks", one), flag.Set("rapid.nofailfile", "true"))
	if text := os.Getenv(Variable); text != "" && r.err == nil {
		r.explore, r.err = time.ParseDuration(text)
	}
	return r
})

func rulesOf(t *testing.T) *rules {
	t.Helper()
	r := theRules()
	if r.err != nil {
		t.Fatalf("%s must be a time such as 10s: %v", Variable, r.err)
	}
	return r
}

func valueOf[T any](name string) T { return flag.Lookup(name).Value.(flag.Getter).Get().(T) }

// seeds are those that a test draws from.
func (r *rules) seeds(name string, number int, regular []uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		switch {
		case r.seed != 0:
			yield(r.seed)
		case r.explore != 0:
			for begun := time.Now(); yield(max(1, rand.Uint64())) && time.Since(begun) < r.explore; {
			}
		default:
			for _, seed := range slices.Concat(regular, fixed(name, number)) {
				if !yield(seed) {
					return
				}
			}
		}
	}
}

// fixed makes seeds of a test's name, so that two tests do not draw the same.
func fixed(name string, number int) []uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	random, out := rand.New(rand.NewPCG(h.Sum64(), 0)), make([]uint64, number)
	for i := range out {
		out[i] = max(1, random.Uint64()) // 0 is no seed to rapid
	}
	return out
}

// check draws one case.
func (r *rules) check(t *testing.T, call string, property func(*rapid.T), seed uint64, at string) {
	t.Helper()
	passed := false
	defer func() {
		t.Helper()
		if !passed || t.Failed() {
			report(t, call, seed, at)
		}
	}()
	r.setting.Lock()
	read := sync.OnceFunc(r.setting.Unlock)
	defer read()
	if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(quiet{t}, func(rt *rapid.T) {
		read()
		property(rt)
	})
	passed = true
}

// A quiet test logs into its log, so that the message of a case that fails comes first, and not what it drew. Rapid takes
// the deadline of go test from a *testing.T alone, and draws fewer cases when it is near: here a slow machine draws as
// many as a fast one.
type quiet struct{ *testing.T }

func (q quiet) Logf(format string, args ...any) {
	if !strings.HasPrefix(format, "[rapid] OK") {
		fmt.Fprintf(testkit.Log(q.T), format+"\n", args...)
	}
}

func (q quiet) Log(args ...any) { fmt.Fprintln(testkit.Log(q.T), args...) }

// report prints the seed of a case that has failed.
func report(t *testing.T, call string, seed uint64, at string) {
	t.Helper()
	if t.Failed() {
		t.Logf("failing seed of %s: as a regular case, add it to the call at %s: draw.%s(t, ..., %d)", t.Name(), at, call, seed)
	}
}

// place is where the test calls this package.
func place() string {
	_, file, line, _ := runtime.Caller(2)
	return fmt.Sprintf("%s:%d", file, line)
}

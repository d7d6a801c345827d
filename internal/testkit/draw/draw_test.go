package draw_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// TestSameDrawsEverywhere compares the draws of a property with those of the day on which this was written.
func TestSameDrawsEverywhere(t *testing.T) {
	h, cases := fnv.New64a(), 0
	draw.Check(t, func(rt *rapid.T) {
		fmt.Fprintln(h, rapid.SliceOf(rapid.StringN(0, 5, -1)).Draw(rt, "texts"), rapid.Int().Draw(rt, "number"))
		cases++
	})
	const want = "100 cases, hash 7255e3788eb3891f"
	if got := fmt.Sprintf("%d cases, hash %x", cases, h.Sum64()); got != want {
		t.Errorf("drew %s, want %s: where rapid draws other values, the regular cases of all tests must be found again", got, want)
	}
	draw.Each(t, func(t *testing.T, seed uint64) {
		if want := uint64(17796620384762094540); seed != want {
			t.Errorf("the seed is %d, want %d", seed, want)
		}
	})
}

// TestExploredSeedFailsAgain finds a rare fault with fresh seeds, and replays the seed as a regular case.
func TestExploredSeedFailsAgain(t *testing.T) {
	for _, test := range []string{"TestRarelyWrong", "TestRarelyEnds", "TestRareSeed"} {
		t.Run(test, func(t *testing.T) {
			if out, failed := run(t, test, "FAULTY=yes"); failed {
				t.Fatalf("the fixed seeds find the rare fault already:\n%s", out)
			}
			out, failed := run(t, test, "FAULTY=yes", draw.Variable+"=1m")
			seed := regexp.MustCompile(`(?m)failing seed of Test\w+.*draw_test\.go:\d+: draw\.\w+\(t, \.\.\., (\d+)\)$`).FindStringSubmatch(out)
			if !failed || seed == nil {
				t.Fatalf("fresh seeds find no fault:\n%s", out)
			}
			for range 2 {
				again, failed := run(t, test, "FAULTY=yes", "REGULAR="+seed[1])
				if !failed || !strings.Contains(again, "draw.") || !strings.Contains(again, seed[1]) {
					t.Errorf("seed %s does not fail again:\n%s", seed[1], again)
				}
				if a, b := wrong(out), wrong(again); a == "" || a != b {
					t.Errorf("seed %s fails with %q, and as a regular case with %q", seed[1], a, b)
				}
			}
			if again, failed := run(t, test, "REGULAR="+seed[1]); failed {
				t.Errorf("seed %s fails when the fault is mended:\n%s", seed[1], again)
			}
			if _, err := os.Stat("testdata"); err == nil {
				t.Error("rapid has written a failure file")
			}
		})
	}
}

// wrong is the line that says what is wrong.
func wrong(out string) string { return regexp.MustCompile(`(?m)wrong: .*$`).FindString(out) }

// run runs one of the tests below in a process of its own.
func run(t *testing.T, test string, env ...string) (out string, failed bool) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+test+"$", "-test.v", "-rapid.shrinktime=0s")
	cmd.Env = slices.Concat(os.Environ(), []string{draw.Variable + "="}, env)
	b, err := cmd.CombinedOutput()
	return string(b), err != nil
}

// regular is the regular case of the tests below; they have none by themselves.
func regular() (out []uint64) {
	for text := range strings.FieldsSeq(os.Getenv("REGULAR")) {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			panic(err)
		}
		out = append(out, seed)
	}
	return out
}

// isFault tells one number in 4096, in a process that is to have a fault.
func isFault(n uint64) bool { return n*0x9e3779b97f4a7c15>>52 == 7 && os.Getenv("FAULTY") != "" }

// A property that fails.
func TestRarelyWrong(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		if n := rapid.Uint64Range(0, 1<<40).Draw(rt, "n"); isFault(n) {
			rt.Fatalf("wrong: %d", n)
		}
	}, regular()...)
}

// A property that ends the test around it.
func TestRarelyEnds(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		if n := rapid.Uint64Range(0, 1<<40).Draw(rt, "n"); isFault(n) {
			t.Fatalf("wrong: %d", n)
		}
	}, regular()...)
}

func TestRareSeed(t *testing.T) {
	draw.Each(t, func(t *testing.T, seed uint64) {
		if isFault(seed) {
			t.Errorf("wrong: %d", seed)
		}
	}, regular()...)
}

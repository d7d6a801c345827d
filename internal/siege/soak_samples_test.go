package siege

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// A sample is what the agent needs at one moment.
type sample struct {
	at         time.Duration // since the faults began
	life       int64         // number of the process, from 1
	memory     float64       // resident, in MB
	goroutines float64
	files      float64 // descriptors
	cuts, vpps int64   // faults so far
}

// sample asks the agent for its figures until ctx ends. An agent that has just been killed
// gives none.
func (s *soak) sample(ctx context.Context) error {
	tick := time.NewTicker(max(*opts.soak/3600, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		life := s.life.Load()
		soon, cancel := context.WithTimeout(ctx, 5*time.Second)
		page, err := s.read(soon, "/metrics")
		cancel()
		if err != nil || life != s.life.Load() {
			continue
		}
		one := sample{at: time.Since(s.begun), life: life, cuts: s.cuts.Load(), vpps: s.vpps.Load()}
		if !one.parse(page) {
			continue // the page broke off
		}
		s.samples = append(s.samples, one)
	}
}

// parse reads the figures of a page of metrics, and reports whether all are there.
func (s *sample) parse(page []byte) bool {
	found := 0
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		var into *float64
		unit := 1.
		switch name {
		case "process_resident_memory_bytes":
			into, unit = &s.memory, 1e6
		case "go_goroutines":
			into = &s.goroutines
		case "process_open_fds":
			into = &s.files
		default:
			continue
		}
		figure, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return false
		}
		*into = figure / unit
		found++
	}
	return found == 3
}

// writeSamples writes a table with one line for each sample.
func writeSamples(path string, all []sample) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = printSamples(f, all)
	return errors.Join(err, f.Close())
}

func printSamples(w io.Writer, all []sample) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "seconds,life,memory_mb,goroutines,descriptors,cuts,vpp_kills")
	for _, s := range all {
		fmt.Fprintf(out, "%.0f,%d,%.1f,%.0f,%.0f,%d,%d\n", s.at.Seconds(), s.life, s.memory, s.goroutines, s.files, s.cuts, s.vpps)
	}
	return out.Flush()
}

const (
	// shortestLife is how long a process must live to be judged. In a shorter life, caches and
	// the heap still grow to the size that they need.
	shortestLife = 4 * time.Minute
	// fewestSamples of a life are judged, so that each quarter has some tens.
	fewestSamples = 120
)

// A verdict compares the second quarter of a life with its last.
type verdict struct {
	life         int64
	figure       string
	second, last float64 // medians
	most         float64 // of last
}

// flat tells whether the figure did not grow.
func (v verdict) flat() bool { return v.last <= v.most }

// String says what was compared.
func (v verdict) String() string {
	return fmt.Sprintf("life %d: %s: median of the second quarter %.1f, of the last %.1f; at most %.1f", v.life, v.figure, v.second, v.last, v.most)
}

// judge compares medians, so that single peaks do not count: a cut or a restart of VPP raises
// memory and goroutines for a moment. The first quarter does not count, because the agent
// grows to its size then. The slack is what a figure varies by between the quarters of a life
// without a leak; one goroutine or descriptor that is left behind by each fault exceeds it.
func judge(all []sample) (out []verdict) {
	lives := map[int64][]sample{}
	for _, s := range all {
		lives[s.life] = append(lives[s.life], s)
	}
	for life := int64(1); int(life) <= len(lives); life++ {
		of := lives[life]
		if len(of) < fewestSamples || of[len(of)-1].at-of[0].at < shortestLife {
			continue
		}
		for _, rule := range []struct {
			figure string
			get    func(sample) float64
			share  float64 // the largest growth
			more   float64 // in addition
		}{
			{"MB of memory", func(s sample) float64 { return s.memory }, 0.10, 4},
			{"goroutines", func(s sample) float64 { return s.goroutines }, 0, 5},
			{"descriptors", func(s sample) float64 { return s.files }, 0, 4},
		} {
			n := len(of)
			second, last := median(of[n/4:n/2], rule.get), median(of[n-n/4:], rule.get)
			out = append(out, verdict{life, rule.figure, second, last, second*(1+rule.share) + rule.more})
		}
	}
	return out
}

func median(of []sample, get func(sample) float64) float64 {
	var all []float64
	for _, s := range of {
		all = append(all, get(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// The rule finds leaks, and lets pass what an agent without one does: noise, peaks, and
// growth while it starts.
func TestJudge(t *testing.T) { draw.Each(t, judgeLives) }

func judgeLives(t *testing.T, seed uint64) {
	const n = 300 // a life of five minutes
	life := func(change func(i int, s *sample)) (out []sample) {
		random := rand.New(rand.NewPCG(seed, 0))
		for i := range n {
			s := sample{at: time.Duration(i) * time.Second, life: 1, memory: 200 + 20*random.Float64(), goroutines: 60 + float64(random.IntN(5)), files: 20 + float64(random.IntN(3))}
			if i%10 == 0 { // a fault
				s.memory, s.goroutines, s.files = s.memory+150, s.goroutines+40, s.files+10
			}
			change(i, &s)
			out = append(out, s)
		}
		return out
	}
	for name, tt := range map[string]struct {
		change func(i int, s *sample)
		want   []string // figures that are not flat
	}{
		"nothing":             {func(int, *sample) {}, nil},
		"growth at the start": {func(i int, s *sample) { s.memory -= max(0, 100-3*float64(i)) }, nil},
		"a step at the end":   {func(i int, s *sample) { s.memory += 50 * float64(i/(n-n/4)) }, []string{"MB of memory"}},
		"20 MB a minute":      {func(i int, s *sample) { s.memory += float64(i) / 3 }, []string{"MB of memory"}},
		"one goroutine a cut": {func(i int, s *sample) { s.goroutines += float64(i / 10) }, []string{"goroutines"}},
		"one file a kill":     {func(i int, s *sample) { s.files += float64(i / 15) }, []string{"descriptors"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			verdicts := judge(life(tt.change))
			for _, v := range verdicts {
				if !v.flat() {
					got = append(got, v.figure)
				}
			}
			if !slices.Equal(got, tt.want) || len(verdicts) != 3 {
				t.Errorf("not flat: %q, want %q: %v", got, tt.want, verdicts)
			}
		})
	}
	if got := judge(life(func(int, *sample) {})[:n/2]); len(got) > 0 {
		t.Errorf("a short life is judged: %v", got)
	}
}

// A page of metrics is read, and one that broke off is not.
func TestSampleParse(t *testing.T) {
	const page = "# HELP go_goroutines x\ngo_goroutines 71\nprocess_open_fds 21\nprocess_resident_memory_bytes 2.5e+08\n"
	var s sample
	if !s.parse([]byte(page)) || s.memory != 250 || s.goroutines != 71 || s.files != 21 {
		t.Errorf("%+v", s)
	}
	if s.parse([]byte(page[:40])) {
		t.Error("half a page is taken")
	}
	var out bytes.Buffer
	if err := printSamples(&out, []sample{{at: time.Minute, life: 2, memory: 250, goroutines: 71, files: 21, cuts: 3, vpps: 1}}); err != nil {
		t.Error(err)
	}
	if want := "60,2,250.0,71,21,3,1\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want a line %q", &out, want)
	}
}

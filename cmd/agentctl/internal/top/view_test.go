package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
)

// sampleOf returns a sample with this many sources and descriptors.
func sampleOf(at time.Time, calls uint64, sources, descriptors int) *sample {
	out := &sample{at: at, stats: counts.Stats{
		TxnStats: counts.TxnStats{
			TotalProcessed: calls, OperationCount: map[string]uint64{"CREATE": 2 * calls}, ErrorCount: 1,
			ValueStateCount: map[string]uint64{"CONFIGURED": 12, "FAILED": 0, "PENDING": 1},
		},
		Descriptors: map[string][]counts.Method{},
	}}
	for i := range sources {
		out.sources = append(out.sources, wire.Source{Name: fmt.Sprintf("source%d", i), State: "synced", Keys: 3})
	}
	if sources > 1 {
		out.sources[1].Error = strings.Repeat("long error ", 20) + "with an end"
	}
	for i := range descriptors {
		out.stats.Descriptors[fmt.Sprintf("vpp-interface-%02d", i)] = []counts.Method{
			{Name: "Create", Count: calls, Total: float64(i), Avg: float64(i) / 1000, Max: float64(i) / 100}, {Name: "Delete"},
		}
	}
	return out
}

func TestViewFits(t *testing.T) {
	start := time.Unix(0, 0)
	before, now := sampleOf(start, 100, 30, 60), sampleOf(start.Add(2*time.Second), 110, 30, 60)
	for _, size := range [][2]int{{80, 23}, {80, 10}, {140, 39}, {40, 5}, {20, 1}} {
		text := view(before, now, size[0], size[1])
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines:\n%s", size, len(lines), text)
		}
		for _, l := range lines {
			if show.Width(l) > size[0] {
				t.Errorf("%v: %d columns: %s", size, show.Width(l), l)
			}
		}
	}
	text := view(before, now, 80, 23)
	for _, want := range []string{
		"transactions 110 (5.0/s)   operations 220 (10.0/s)   failed 1", "values       CONFIGURED 12  PENDING 1\n",
		"source0   synced", "      long error with an end\n", "and 25 more\n", "vpp-interface-59", "Create", "59ms", "5.0/s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Delete") {
		t.Errorf("a verb that was never called is listed:\n%s", text)
	}
}

func TestViewOnce(t *testing.T) {
	text := view(nil, sampleOf(time.Unix(0, 0), 100, 30, 60), 0, 0)
	if n := strings.Count(text, "\n"); n != 3+31+1+61 {
		t.Errorf("%d lines; expected all:\n%s", n, text)
	}
	if strings.Contains(text, "/s") || strings.Contains(text, "…") {
		t.Errorf("there is a rate, or a text is cut:\n%s", text)
	}
}

// TestRateAfterRestart has counters that begin again.
func TestRateAfterRestart(t *testing.T) {
	start := time.Unix(0, 0)
	text := view(sampleOf(start, 100, 1, 1), sampleOf(start.Add(time.Second), 5, 1, 1), 80, 23)
	if strings.Contains(text, "/s") {
		t.Errorf("there is a rate:\n%s", text)
	}
}

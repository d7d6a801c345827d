package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// leastVerbs is the number of lines that the table of verbs has at least, with its header, if
// there are many sources.
const leastVerbs = 8

// view returns the text of a sample, with rates since the sample before, which may be nil. The
// text has at most this many columns and lines; 0: no limit.
func view(before, now *sample, columns, lines int) string {
	head := broken(columns,
		fmt.Sprintf("transactions %d%s   operations %d%s   failed %d", now.stats.TxnStats.TotalProcessed,
			rateText(before, now, func(s *sample) uint64 { return s.stats.TxnStats.TotalProcessed }),
			now.operations(), rateText(before, now, (*sample).operations), now.stats.TxnStats.ErrorCount),
		"values       "+stateCounts(now),
		"",
	)
	sources, verbs := sourceLines(now, columns), verbLines(before, now, columns)
	if room := lines - len(head) - 1; lines > 0 {
		sources = cutLines(sources, max(room-min(len(verbs), leastVerbs), 2))
		verbs = cutLines(verbs, max(room-len(sources), 0))
	}
	all := slices.Concat(head, sources, []string{""}, verbs)
	if lines > 0 {
		all = all[:min(len(all), lines)]
	}
	var b strings.Builder
	for _, l := range all {
		if columns > 0 {
			l = show.Shorten(l, columns)
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}

// broken returns lines that are broken where they are wider than the columns; 0: no limit.
func broken(columns int, lines ...string) []string {
	text := strings.Join(lines, "\n")
	if columns > 0 {
		text = show.BrokenAt(text, columns, len("values       "))
	}
	return strings.Split(text, "\n")
}

// cutLines returns the first rows of a table that fit into most lines, each with its reasons. The last
// line counts those that are left out.
func cutLines(all []string, most int) []string {
	if len(all) <= most || most < 1 {
		return all[:min(len(all), most)]
	}
	isReason := func(line string) bool { return strings.HasPrefix(line, " ") }
	end := most - 1
	for end > 1 && isReason(all[end]) { // those of the row before
		end--
	}
	left := 0
	for _, line := range all[end:] {
		if !isReason(line) {
			left++
		}
	}
	return append(slices.Clone(all[:end]), fmt.Sprintf("and %d more", left))
}

// rateText returns " (1.5/s)", or nothing if the rate is unknown.
func rateText(before, now *sample, count func(*sample) uint64) string {
	r, known := rate(before, now, count)
	if !known {
		return ""
	}
	return fmt.Sprintf(" (%.1f/s)", r)
}

// stateCounts returns the number of values by state: "CONFIGURED 12  PENDING 1".
func stateCounts(s *sample) string {
	var out []string
	for _, state := range slices.Sorted(maps.Keys(s.stats.TxnStats.ValueStateCount)) {
		if n := s.stats.TxnStats.ValueStateCount[state]; n > 0 {
			out = append(out, show.Line(state)+" "+strconv.FormatUint(n, 10))
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, "  ")
}

// sourceLines returns the table of sources.
func sourceLines(s *sample, columns int) []string {
	var b strings.Builder
	t := show.NewTableOf(columns, &b, "SOURCE", "STATE", "KEYS", "WAITING", "LAG", "REFUSED", "ERROR")
	for _, src := range s.sources {
		state := src.State
		if src.Listed > 0 {
			state += fmt.Sprintf(" %d", src.Listed)
		}
		lag := ""
		if src.Waiting > 0 {
			lag = show.Short(src.Lag)
		}
		t.Row(src.Name, state, strconv.Itoa(src.Keys), nonZero(src.Waiting), lag, nonZero(src.Refused), show.Remote(src.Error))
	}
	_ = t.End() // a strings.Builder never fails
	return linesOf(b.String())
}

// verbLines returns the table of verbs, the slowest first.
func verbLines(before, now *sample, columns int) []string {
	all := now.verbs()
	slices.SortFunc(all, func(a, b verb) int {
		return cmp.Or(cmp.Compare(b.Avg, a.Avg), cmp.Compare(a.descriptor, b.descriptor), cmp.Compare(a.Name, b.Name))
	})
	var b strings.Builder
	t := show.NewTableOf(columns, &b, "DESCRIPTOR", "VERB", "CALLS", "RATE", "MEAN", "MAXIMUM", "TOTAL")
	for _, v := range all {
		r := ""
		if perSecond, known := rate(before, now, func(s *sample) uint64 { return s.calls(v) }); known {
			r = fmt.Sprintf("%.1f/s", perSecond)
		}
		t.Row(v.descriptor, v.Name, strconv.FormatUint(v.Count, 10), r, seconds(v.Avg), seconds(v.Max), seconds(v.Total))
	}
	_ = t.End() // a strings.Builder never fails
	return linesOf(b.String())
}

// seconds returns a duration in a unit that fits.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// nonZero returns the number, or an empty cell for zero.
func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// linesOf splits a text into lines.
func linesOf(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

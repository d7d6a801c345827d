package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A figure is a number or a range with its unit, as the tables have it: "1.5 to 1.7 times".
type figure struct {
	low, high float64 // in the base unit of its kind
	kind      string  // time, memory, rate, times or share
	text      string
	before    string // the text before it
}

// units are the kinds of units, and how many base units each has.
func units() map[string]struct {
	kind string
	base float64
} {
	type unit = struct {
		kind string
		base float64
	}
	return map[string]unit{
		"us": {"time", 1e-6}, "ms": {"time", 1e-3}, "s": {"time", 1},
		"B": {"memory", 1}, "kB": {"memory", 1e3}, "MB": {"memory", 1e6}, "MiB": {"memory", 1 << 20}, "GB": {"memory", 1e9},
		"values/s": {"rate", 1}, "k values/s": {"rate", 1e3}, "k/s": {"rate", 1e3},
		"times": {"times", 1}, "%": {"share", 1},
	}
}

// pattern finds a figure. Two numbers before one unit are a range.
var pattern = regexp.MustCompile(`(\d[\d,]*(?:\.\d+)?)(?: (?:to|and) (\d[\d,]*(?:\.\d+)?))? ?(k values/s|values/s|k/s|times|MiB|MB|kB|GB|B|us|ms|s|%)(?:$|[^\w/])`)

// figures returns all figures of a cell, in their order.
func figures(cell string) (out []figure) {
	all := units()
	for _, at := range pattern.FindAllStringSubmatchIndex(cell, -1) {
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return cell[at[2*i]:at[2*i+1]]
		}
		unit := all[group(3)]
		low, high := number(group(1)), number(group(2))
		if group(2) == "" {
			high = low
		}
		out = append(out, figure{
			low: min(low, high) * unit.base, high: max(low, high) * unit.base, kind: unit.kind,
			text: cell[at[0]:at[7]], before: strings.TrimSpace(cell[:at[0]]),
		})
	}
	return out
}

// number reads digits with commas; the pattern admits nothing else.
func number(text string) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return 0
	}
	return n
}

// bound reports whether a bar is a figure that another one can be compared with. "p50 within
// 20 %" is not: it compares two measured figures.
func bound(bar string) bool { return !strings.Contains(bar, "within") && len(figures(bar)) > 0 }

// compare returns the first figure of a cell that has the unit of a bar, as a multiple of the
// bar. A bar with the name of a column before it is only for that column. At a rate, and at a
// share of a rate, more is better.
func compare(bar, cell, column string, columns []string) *point {
	if !bound(bar) {
		return nil
	}
	for _, limit := range barsOf(bar, column, columns) {
		label := lastWord(limit.before)
		for _, f := range figures(cell) {
			if f.kind != limit.kind || strings.HasPrefix(label, "p") && percentile(label) && lastWord(f.before) != label {
				continue
			}
			p := point{f.low / limit.low, f.high / limit.low, f.text}
			if limit.kind == "rate" || strings.Contains(bar, "of the rate") {
				p.low, p.high = limit.low/f.high, limit.low/f.low
			}
			return &p
		}
	}
	return nil
}

// barsOf returns the figures of a bar that are for a column, its own first.
func barsOf(bar, column string, columns []string) (out []figure) {
	for _, f := range figures(bar) {
		switch of := lastWord(f.before); {
		case of == column:
			out = append([]figure{f}, out...)
		case !slices.Contains(columns, of):
			out = append(out, f)
		}
	}
	return out
}

// lastWord is the word before a figure.
func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// percentile reports whether a word is p50 or the like.
func percentile(word string) bool {
	_, err := strconv.Atoi(strings.TrimPrefix(word, "p"))
	return err == nil
}

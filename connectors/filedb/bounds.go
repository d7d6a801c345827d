package filedb

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models/structured/document"
)

// bound checks the bounds, and sets the missing ones to their defaults.
func (c *Config) bound() error {
	for name, n := range map[string]int64{
		"max-files": int64(c.MaxFiles), "max-entries": int64(c.MaxEntries), "max-depth": int64(c.MaxDepth),
		"max-file-size": int64(c.MaxFileSize), "max-yaml-size": int64(c.MaxYAMLSize), "max-yaml-nodes": int64(c.MaxYAMLNodes), "max-total-size": int64(c.MaxTotalSize),
	} {
		if n < 0 {
			return fmt.Errorf("%s: %d: expected a number above zero", name, n)
		}
	}
	if c.MaxYAMLNodes > document.MostNodes {
		return fmt.Errorf("max-yaml-nodes: %d: the maximum is %d", c.MaxYAMLNodes, document.MostNodes)
	}
	c.MaxYAMLNodes = cmp.Or(c.MaxYAMLNodes, 150_000)
	c.MaxFiles, c.MaxEntries, c.MaxDepth = cmp.Or(c.MaxFiles, 10_000), cmp.Or(c.MaxEntries, 100_000), cmp.Or(c.MaxDepth, 16)
	c.MaxFileSize, c.MaxYAMLSize = cmp.Or(c.MaxFileSize, 64<<20), cmp.Or(c.MaxYAMLSize, 8<<20)
	c.MaxTotalSize = cmp.Or(c.MaxTotalSize, 256<<20)
	return nil
}

// A Size is a number of bytes. As text it may end with KiB, MiB or GiB.
type Size int64

// UnmarshalYAML reads a number of bytes, or a text such as "64MiB".
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	text, unit := n.Value, int64(1)
	for suffix, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if before, ok := strings.CutSuffix(n.Value, suffix); ok {
			text, unit = strings.TrimSpace(before), bytes
		}
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 0 || v > (1<<50)/unit {
		return fmt.Errorf("found %q: expected a number of bytes, such as 67108864, 64MiB or 1GiB", n.Value)
	}
	*s = Size(v * unit)
	return nil
}

// String returns the shortest exact form.
func (s Size) String() string {
	for _, unit := range []struct {
		suffix string
		bytes  Size
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s >= unit.bytes && s%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", s/unit.bytes, unit.suffix)
		}
	}
	return fmt.Sprintf("%d bytes", int64(s))
}

// A place is one of the configured paths, with the amount found there.
type place struct {
	path           string
	files, entries int
	bytes          Size
	full           bool            // no further folder is entered
	over           map[string]bool // the bounds that are exceeded
}

// exceed records, once for each bound of a place, that the bound is exceeded.
func (w *walk) exceed(p *place, bound, limit, what string) {
	if p.over[bound] {
		return
	}
	if p.over == nil {
		p.over = map[string]bool{}
	}
	p.over[bound] = true
	w.lost = append(w.lost, p.path)
	w.problems = append(w.problems, fmt.Errorf("%s: %s, more than %s allows (%s): the rest is not read, and no earlier entry is removed; "+
		"remove unrelated files, or raise %s in filedb.conf", p.path, what, bound, limit, bound))
}

// takes reports whether a file of a size still fits into a place. If so, it counts the
// file.
func (w *walk) takes(p *place, path string, size Size) bool {
	if size > w.cfg.MaxFileSize {
		size = 0 // the file is not read, and that is reported
	}
	switch {
	case p.files >= w.cfg.MaxFiles:
		p.full = true
		w.exceed(p, "max-files", strconv.Itoa(w.cfg.MaxFiles), "has too many YAML and JSON files, "+path+" among them")
		return false
	case p.bytes+size > w.cfg.MaxTotalSize:
		w.exceed(p, "max-total-size", w.cfg.MaxTotalSize.String(), "has files that are too large together, "+path+" among them")
		return false
	}
	p.files++
	p.bytes += size
	return true
}

// still reports whether all still fits after a file has changed. If so, it counts the
// change. If not, or if an omitted file may fit now, everything must be counted again.
func (w *walk) still(path string, now identity) bool {
	before, counted := w.files[path]
	for _, p := range w.places {
		if !within(path, p.path) {
			continue
		}
		mayFit := len(p.over) > 0 && (!counted || now.size < before.size)
		if mayFit || !counted && p.files >= w.cfg.MaxFiles || p.bytes+Size(now.size-before.size) > w.cfg.MaxTotalSize {
			return false
		}
		if !counted {
			p.files++
		}
		p.bytes += Size(now.size - before.size)
		w.files[path] = now
		return true
	}
	return false
}

// exceeded reports whether a bound of any place is exceeded.
func (w *walk) exceeded() bool {
	return slices.ContainsFunc(w.places, func(p *place) bool { return len(p.over) > 0 })
}

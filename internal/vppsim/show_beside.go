package vppsim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/vppwire"
)

func (w *world) showProxies() string {
	var lines []string
	for _, r := range w.proxyRanges {
		lines = append(lines, fmt.Sprintf("table %d %s to %s\n", r.TableID, r.Low, r.Hi))
	}
	for index := range w.proxying {
		lines = append(lines, w.nameOf(index)+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (w *world) showL3XCs() string {
	var lines []string
	for key, x := range w.l3xc {
		lines = append(lines, fmt.Sprintf("%s by %d paths\n", w.nameOf(key.index), len(x.Paths)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (w *world) showTEIB() string {
	var lines []string
	for key, e := range w.teib {
		lines = append(lines, fmt.Sprintf("%s %s via %s\n", w.nameOf(key.index), key.peer, vppwire.Addr(e.Nh)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

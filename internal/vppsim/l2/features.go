package l2

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A feature has another plugin look at the bridged packets of an interface.
type feature struct {
	index uint32
	name  string // of VPP's node, such as "span-l2-output"
}

// SetFeature adds a feature to an interface, bridged or not, or removes it. VPP clears all features
// when the interface leaves layer 2, and does not tell the plugin (VPP l2_input.c, set_int_l2_mode).
func (p *L2) SetFeature(index uint32, name string, on bool) {
	if on {
		p.features[feature{index, name}] = true
	} else {
		delete(p.features, feature{index, name})
	}
}

// showFeatures lists the features of the interface with a name, which the words are.
func (p *L2) showFeatures(words []string) (string, core.Errno) {
	var lines []string
	for f := range p.features {
		if p.vpp.NameOf(f.index) == strings.Join(words, " ") {
			lines = append(lines, fmt.Sprintf("  (%s)\n", f.name))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ""), core.OK
}

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
	early bool   // it looks at the packets before layer 2 does, whatever the mode of the interface is
}

// SetFeature adds a feature to an interface, bridged or not, or removes it. VPP clears all features
// of layer 2 when the interface leaves layer 2, and does not tell the plugin (VPP l2_input.c, set_int_l2_mode).
func (p *L2) SetFeature(index uint32, name string, on bool) {
	p.set(feature{index: index, name: name}, on)
}

// SetEarlyFeature is SetFeature for a feature that does not end with layer 2.
func (p *L2) SetEarlyFeature(index uint32, name string, on bool) {
	p.set(feature{index: index, name: name, early: true}, on)
}

func (p *L2) set(f feature, on bool) {
	if on {
		p.features[f] = true
	} else {
		delete(p.features, f)
	}
}

// showFeatures lists the features of the interface with a name, which the words are, below a title.
func (p *L2) showFeatures(words []string) (string, core.Errno) {
	lines := []string{"Feature paths of " + strings.Join(words, " ") + ":\n"}
	for f := range p.features {
		if p.vpp.NameOf(f.index) == strings.Join(words, " ") {
			lines = append(lines, fmt.Sprintf("  (%s)\n", f.name))
		}
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, ""), core.OK
}

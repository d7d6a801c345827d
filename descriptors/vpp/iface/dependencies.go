package iface

import (
	"slices"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

// DependOn returns a dependency on each of some interfaces, in the order of their names. The label
// of the usual case, a single interface, is label alone. Otherwise labels end with the names, so
// that each says what a value waits for.
func DependOn(label string, names []string) (out []scheduler.Dependency) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		own := label
		if len(names) > 1 {
			own += "-" + name
		}
		out = append(out, scheduler.Dependency{Label: own, Key: keys.Interface(name).Key()})
	}
	return out
}

// Package ownership has the tags of interfaces and bridge domains in VPP say who owns them.
//
//	owner := ownership.New(ownership.Options{Label: "vpp1", Installation: id})
//	api := ownership.Over(manager, owner) // a conn.API
//
// A tag is the label of the agent, ".", its installation, "@", and the name. Through the
// [API] only names are seen: what is written is signed, and of what is read the sign of
// the own label is taken off. The tag of another agent stays as it is, and is [Owner.Foreign].
//
// VPP keeps 63 bytes. A label that is longer than 16 bytes counts by its hash. A name for
// which no room is left is cut, and its hash added. It is known again if it was written or
// [Owner.Expect]ed before; otherwise the cut name counts.
//
// Safe for use by any goroutine.
package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/vppwire"
)

const (
	// Longest is what VPP keeps of a tag (VPP interface.api, string tag[64]).
	Longest = 63

	longestLabel    = 16
	installationLen = 16
	hashLen         = 8
)

// Options are those of an Owner.
type Options struct {
	// Label of the agent. Defaults to none: then tags are names, and nothing else.
	Label string
	// Installation of the agent, 16 hexadecimal digits.
	Installation string
	// Lives tells whether an installation is that of a living agent. Defaults to that none is.
	Alive func(installation string) bool
}

// An Owner signs tags, and reads who has signed them. The zero value and nil sign nothing.
type Owner struct {
	o    Options
	sign string // "vpp1.0123456789abcdef@"

	mu         sync.Mutex         // guards what follows
	names      map[string]string  // by the cut name
	otherSigns map[string]tagSign // of the tags that do not carry the sign of this installation, by name
}

// An age says what sign a tag carries that is not that of this installation.
type tagSign int

const (
	ownSign             tagSign = iota
	earlierInstallation         // that of an installation which does not live
	unsigned                    // none
)

// New returns an Owner.
func New(o Options) *Owner {
	if o.Alive == nil {
		o.Alive = func(string) bool { return false }
	}
	w := &Owner{o: o, names: map[string]string{}, otherSigns: map[string]tagSign{}}
	if o.Label != "" {
		w.sign = labelText(o.Label) + "." + o.Installation + "@"
	}
	return w
}

func labelText(label string) string {
	if len(label) > longestLabel || strings.ContainsAny(label, "@.") {
		return "#" + hash(label)
	}
	return label
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLen]
}

func (w *Owner) signs() bool { return w != nil && w.sign != "" }

// Tag is the tag of a name.
func (w *Owner) Tag(name string) string {
	if !w.signs() || name == "" {
		return name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.otherSigns, name)
	return w.sign + w.cutLocked(name)
}

// cutLocked is what a tag has of a name.
func (w *Owner) cutLocked(name string) string {
	room := Longest - len(w.sign)
	if len(name) <= room {
		return name
	}
	cut := name[:room-hashLen-1] + "~" + hash(name)
	w.names[cut], w.names[vppwire.Text(cut)] = name, name // it may end within a character
	return cut
}

// Expect has names known again in tags that had no room for them.
func (w *Owner) Expect(name string) {
	if w.signs() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cutLocked(name)
	}
}

// Name is the name that a tag has; of a tag of another agent the whole tag.
func (w *Owner) Name(tag string) string {
	if !w.signs() || tag == "" {
		return tag
	}
	name, label, installation := split(tag)
	ours := label == labelText(w.o.Label)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case label == "":
		w.otherSigns[tag] = unsigned
		return tag
	case !ours || installation != w.o.Installation && w.o.Alive(installation):
		return tag
	}
	if whole, known := w.names[name]; known {
		name = whole
	}
	if installation == w.o.Installation {
		delete(w.otherSigns, name)
	} else {
		w.otherSigns[name] = earlierInstallation
	}
	return name
}

// split parts a tag; without a sign all of it is the name.
func split(tag string) (name, label, installation string) {
	owner, name, signed := strings.Cut(tag, "@")
	label, installation, whole := strings.Cut(owner, ".")
	if !signed || !whole || label == "" || len(installation) != installationLen {
		return tag, "", ""
	}
	if _, err := hex.DecodeString(installation); err != nil {
		return tag, "", ""
	}
	return name, label, installation
}

// Foreign says that a name, as Name returns it, is the tag of another agent.
func (w *Owner) Foreign(name string) bool {
	if !w.signs() {
		return false
	}
	_, label, installation := split(name)
	return label != "" && (label != labelText(w.o.Label) || installation != w.o.Installation)
}

// Older says that the tag which was last read for a name does not carry the sign of this
// installation, but none or that of an earlier one.
func (w *Owner) Older(name string) bool { return w.signOf(name) != ownSign }

// Unsigned says that the tag which was last read for a name does not say whose it is.
func (w *Owner) Unsigned(name string) bool { return w.signOf(name) == unsigned }

func (w *Owner) signOf(name string) tagSign {
	if !w.signs() {
		return ownSign
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.otherSigns[name]
}

// Package ownership signs the tags of interfaces, bridge domains, access lists and NAT44
// mappings in VPP with their owner.
// Several agents can then share one VPP, and an agent recognises its own objects after a
// restart.
//
//	owner := ownership.New(ownership.Options{Label: "vpp1", Installation: id})
//	api := ownership.WithTags(manager, owner) // a conn.API
//
// A tag is the agent's label, ".", its installation, "@", and the name:
// "vpp1.0123456789abcdef@memif1". [WithTags] returns an API that hides the signs of this
// agent. Tags of other agents stay unchanged and are [Owner.Foreign].
//
// VPP stores 63 bytes. A label of more than 16 bytes is replaced by its hash. A name that
// does not fit is cut and gets its hash as suffix. A cut name is translated back if it was
// written or passed to [Owner.Expect] before; otherwise the cut name is used.
//
//	sign of a tag                                    | Foreign | Older | Unsigned
//	own label, own installation                      | no      | no    | no
//	own label, dead installation                     | no      | yes   | no
//	own label, alive installation, or dead since     | yes     | no    | no
//	another label                                    | yes     | no    | no
//	none                                             | no      | yes   | yes
//
// An installation is dead since if its tag was learned while it was alive ([Owner.Learn]).
//
// An Owner is safe for concurrent use.
package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/internal/vppwire"
)

const (
	// Longest is the maximum length of a tag in bytes (VPP interface.api, string tag[64]).
	Longest = 63

	longestLabel    = 16
	installationLen = 16
	hashLen         = 8
)

// Options configure an Owner.
type Options struct {
	// Label is the label of the agent. Defaults to none: tags are then plain names.
	Label string
	// Installation identifies this installation of the agent: 16 hexadecimal digits.
	Installation string
	// Alive reports whether the agent of an installation runs. Defaults to: none does.
	Alive func(installation string) bool
}

// An Owner signs tags and reads the signs of others. The zero value and nil sign nothing.
type Owner struct {
	o    Options
	sign string // "vpp1.0123456789abcdef@"

	mu         sync.Mutex         // guards the fields below
	names      map[string]string  // full names by cut name
	otherSigns map[string]tagSign // tags without the sign of this installation, by name
	lived      map[string]bool    // other installations whose agents were seen to run
}

// A tagSign classifies the sign of a tag.
type tagSign int

const (
	ownSign             tagSign = iota
	earlierInstallation         // an installation without a running agent
	unsigned                    // none
)

// New returns an Owner.
func New(o Options) *Owner {
	if o.Alive == nil {
		o.Alive = func(string) bool { return false }
	}
	w := &Owner{o: o, names: map[string]string{}, otherSigns: map[string]tagSign{}, lived: map[string]bool{}}
	if o.Label != "" {
		w.sign = labelText(o.Label) + "." + o.Installation + "@"
	}
	return w
}

// labelText returns the label as it is written into tags. A long label, or one with a
// separator, is replaced by its hash.
func labelText(label string) string {
	if len(label) > longestLabel || strings.ContainsAny(label, "@.") {
		return "#" + hash(label)
	}
	return label
}

// hash returns the first 8 hexadecimal digits of a SHA-256 sum.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLen]
}

// signs reports whether tags are signed at all.
func (w *Owner) signs() bool { return w != nil && w.sign != "" }

// Tag returns the tag for a name.
func (w *Owner) Tag(name string) string {
	if !w.signs() || name == "" {
		return name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.otherSigns, name)
	return w.sign + w.cutLocked(name)
}

// cutLocked returns the part of a name that fits into a tag, and remembers cut names.
func (w *Owner) cutLocked(name string) string {
	room := Longest - len(w.sign)
	if len(name) <= room {
		return name
	}
	cut := name[:room-hashLen-1] + "~" + hash(name)
	w.names[cut], w.names[vppwire.Text(cut)] = name, name // the cut may split a character, which VPP's answer replaces
	return cut
}

// Expect announces a name, so that its cut form in a tag is translated back.
func (w *Owner) Expect(name string) {
	if w.signs() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cutLocked(name)
	}
}

// WrongName returns the allowed form if the name of an object is invalid, or "". An object with such a name would count
// as that of another agent, or as one that nobody has named, in a VPP that agents share.
func WrongName(name string) string {
	if _, label, _ := split(name); label != "" {
		return "a name that does not begin like LABEL.INSTALLATION@, by which agents sign what is theirs in VPP"
	}
	if strings.HasPrefix(name, ifindex.UntaggedPrefix) {
		return fmt.Sprintf("a name that does not begin with %q, as the names of objects do that nobody has named", ifindex.UntaggedPrefix)
	}
	return ""
}

// Name returns the name in a tag. For a tag of another agent it returns the whole tag.
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
	case !ours || installation != w.o.Installation && (w.lived[installation] || w.o.Alive(installation)):
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

// split parses a tag. Without a valid sign, the whole tag is the name.
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

// Learn notes the agent of a name, as returned by Name, if it is another one with our label, which runs: it
// counts as another one even while it is down.
func (w *Owner) Learn(name string) {
	if !w.Foreign(name) {
		return
	}
	_, label, installation := split(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if label == labelText(w.o.Label) {
		w.lived[installation] = true
	}
}

// Foreign reports whether a name, as returned by Name, is the tag of another agent.
func (w *Owner) Foreign(name string) bool {
	if !w.signs() {
		return false
	}
	_, label, installation := split(name)
	return label != "" && (label != labelText(w.o.Label) || installation != w.o.Installation)
}

// Older reports whether the last tag read for a name lacks the sign of this installation: it
// has none, or that of an earlier installation.
func (w *Owner) Older(name string) bool { return w.signOf(name) != ownSign }

// Unsigned reports whether the last tag read for a name has no sign, so that its owner is
// unknown.
func (w *Owner) Unsigned(name string) bool { return w.signOf(name) == unsigned }

// signOf returns the class of the last tag read for a name.
func (w *Owner) signOf(name string) tagSign {
	if !w.signs() {
		return ownSign
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.otherSigns[name]
}

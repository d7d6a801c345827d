package core

import (
	"encoding/hex"
	"strings"
)

// ParseTag splits an agent's tag, "vpp1.0123456789abcdef@name", into the name and the
// owner in front of it. A tag of any other form is a name without owner.
func ParseTag(tag string) (name, owner string) {
	owner, name, signed := strings.Cut(tag, "@")
	label, installation, whole := strings.Cut(owner, ".")
	if _, err := hex.DecodeString(installation); err != nil || !signed || !whole || label == "" || len(installation) != 16 {
		return tag, ""
	}
	return name, owner
}

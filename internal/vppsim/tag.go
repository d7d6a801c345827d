package vppsim

import (
	"encoding/hex"
	"strings"
)

// nameIn parts the tag of an agent, "vpp1.0123456789abcdef@name", into the name and who owns
// it. Any other tag is a name.
func nameIn(tag string) (name, owner string) {
	owner, name, signed := strings.Cut(tag, "@")
	label, installation, whole := strings.Cut(owner, ".")
	if _, err := hex.DecodeString(installation); err != nil || !signed || !whole || label == "" || len(installation) != 16 {
		return tag, ""
	}
	return name, owner
}

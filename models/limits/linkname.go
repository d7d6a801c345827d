package limits

import (
	"fmt"
	"strings"
)

// longestLinkName is the length of the longest name, in bytes: IFNAMSIZ of linux/if.h, without the final zero.
const longestLinkName = 15

// WrongLinkName returns the allowed form if the name of a Linux link is invalid, or "". A name that it accepts is usable
// as written: the kernel neither refuses nor changes it, which a fuzz test of descriptors/linux compares. The rules are
// those of net/core/dev.c (dev_valid_name and dev_get_valid_name), and of net/core/sysctl_net_core.c and
// net/ipv4/devinet.c for the names of folders below /proc/sys/net that the kernel keeps for itself.
func WrongLinkName(name string) string {
	switch {
	case name == "":
		return "a name"
	case len(name) > longestLinkName:
		return fmt.Sprintf("a name of the kernel, at most %d bytes (it has %d)", longestLinkName, len(name))
	case name == "." || name == ".." || name == "all" || name == "default":
		return `a name of the kernel, none of ".", "..", "all" and "default", which it keeps for itself`
	case strings.ContainsRune(name, '%'):
		return `a name of the kernel, without "%", which it takes for a template`
	case strings.IndexFunc(name, func(r rune) bool { return r == '/' || r == ':' }) >= 0, hasSpace(name):
		return "a name of the kernel, without slash, colon or space"
	}
	return ""
}

// hasSpace reports whether the kernel finds a space or the end of a text in a name. It looks at bytes, and takes
// that of the no-break space of Latin-1 for one, wherever it stands: the letter "à" in UTF-8 has it.
func hasSpace(name string) bool {
	for _, b := range []byte(name) {
		if b == 0 || b == ' ' || b >= '\t' && b <= '\r' || b == 0xa0 {
			return true
		}
	}
	return false
}

package kinds

import (
	"strings"
	"unicode"

	"github.com/keyplane/keyplane/models"
)

// Findings collects the faults of a value. Its methods check fields that several kinds
// have, so that their errors read alike.
type Findings struct{ models.Faults }

// hostName checks the name of a host link (Linux net/core/dev.c, dev_valid_name).
func (f *Findings) hostName(field, name string) {
	bad := func(r rune) bool { return r == '/' || r == ':' || unicode.IsSpace(r) || r == 0 }
	switch {
	case len(name) > longestHostName:
		f.Add(field, name, "a name of Linux, at most %d bytes (it has %d)", longestHostName, len(name))
	case strings.ContainsFunc(name, bad) || name == "." || name == "..":
		f.Add(field, name, "a name of Linux, without slash, colon or space")
	}
}

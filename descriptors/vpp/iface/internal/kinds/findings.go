package kinds

import (
	"github.com/keyplane/keyplane/internal/linkname"
	"github.com/keyplane/keyplane/models"
)

// Findings collects the faults of a value. Its methods check fields that several kinds
// have, so that their errors read alike.
type Findings struct{ models.Faults }

// hostName checks the name of a host link.
func (f *Findings) hostName(field, name string) {
	if want := linkname.Wrong(name); want != "" && name != "" {
		f.Add(field, name, "%s", want)
	}
}

package kinds

import (
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
)

// Findings collects the faults of a value. Its methods check fields that several kinds
// have, so that their errors read alike.
type Findings struct{ models.Faults }

// hostName checks the name of a host link.
func (f *Findings) hostName(field, name string) {
	if want := limits.WrongLinkName(name); want != "" && name != "" {
		f.Add(field, name, "%s", want)
	}
}

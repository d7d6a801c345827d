// Package valuetext renders values for logs.
package valuetext

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
)

// maxValueText is the maximum length of a value, in bytes. Longer texts are cut.
const maxValueText = 16 << 10

// Line renders the message on one line, with stable spacing and without secrets.
func Line(m proto.Message) string {
	if m == nil {
		return "<NIL>"
	}
	text, err := models.Text(models.Redacted(m), false)
	switch {
	case err != nil:
		return "<" + printable.Line(err.Error()) + ">"
	case len(text) == 0:
		return "<EMPTY>"
	}
	return "{ " + printable.Line(printable.Cut(text, maxValueText)) + " }"
}

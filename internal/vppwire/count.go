package vppwire

import (
	"strings"

	"go.fd.io/govpp/binapi/vlib"
)

// Counted returns the name under which tests count a message. That of a command line has its
// first word, so that "cli_inband show" can be told from a command that changes something.
func Counted(name string, message []byte) string {
	var q vlib.CliInband
	if name != q.GetMessageName() || Decode(message, &q) != nil {
		return name
	}
	word, _, _ := strings.Cut(q.Cmd, " ")
	return name + " " + word
}

// Package inspect has the commands of agentctl that show values and their sources: their states, their
// content, and the reason why one is not applied.
package inspect

import (
	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
)

// modelHelp describes MODEL.
const modelHelp = "A MODEL is a name such as linux.l3.route, a pattern such as 'linux.*', or a short name: the last word of the name or the field in\n" +
	"files, such as route, routes or linux.routes."

// Commands returns the commands of this package.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{values(s), get(s), model(s), generate(s), sources(s), dump(s), explain(s)}
}

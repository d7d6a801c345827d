// Package declare has the commands of agentctl that change declared values, and those that belong
// to such changes: the export of values, and waiting for their effect.
//
// Values come from files in the form of filedb. They are declared in a layer of the agent, with the
// data source agentctl unless the user names another one, or they are written into a store. Over
// the agent's socket and over its HTTP server the requests are the same.
package declare

import (
	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
)

// Commands returns the commands of this package.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{apply(s), put(s), remove(s), try(s), confirm(s), edit(s), exportValues(s), rollback(s), waitFor(s)}
}

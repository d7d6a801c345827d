// Agentctl is the command-line client of the agent: it shows the agent's state and edits its
// stores. Package cli implements the commands; `agentctl -h` describes them for users.
package main

import (
	"log/slog"
	"os"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/connectors/redis"
)

func main() {
	redis.LogTo(slog.New(slog.DiscardHandler)) // the errors of commands say the same
	os.Exit(cli.Main())
}

// Agentctl is the command-line client of the agent: it shows the agent's state and edits its
// stores. Package cli implements the commands; `agentctl -h` describes them for users.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/connectors/redis"
)

// main runs one command. SIGINT and SIGTERM cancel it, so that requests end and sessions
// close before the process exits.
func main() {
	redis.LogTo(slog.New(slog.DiscardHandler)) // the errors of commands say the same
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.LookupEnv)
	stop()
	os.Exit(code)
}

// Agentctl is the command with which people look at the agent and edit its stores.
// What it can do is in package cli; `agentctl -h` is for the person who runs it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.LookupEnv)
	stop()
	os.Exit(code)
}

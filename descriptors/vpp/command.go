package vpp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// commandWithin is how long a line of VPP's command line may take.
const commandWithin = 30 * time.Second

// Command runs a line of VPP's command line and returns its output. VPP carries it out on
// its main thread, between requests. The error of a VPP that is not connected is
// conn.ErrLost. VPP reports a wrong line in the output.
func (p *Plugin) Command(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	reply := &vlib.CliInbandReply{}
	err := p.manager.Call(ctx, &vlib.CliInband{Cmd: line}, reply)
	if errors.Is(err, conn.ErrLost) {
		return "", fmt.Errorf("VPP is not connected: %w", errors.Join(err, p.manager.Info().Err))
	}
	if err != nil {
		return "", fmt.Errorf("VPP command %q: %w", line, err)
	}
	return reply.Reply, nil
}

// Connection returns the state of the connection, without asking VPP.
func (p *Plugin) Connection() conn.Info { return p.manager.Info() }

package vpp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// commandWithin is how long a line of VPP's command line may take.
const commandWithin = 30 * time.Second

// Command runs a line of VPP's command line and returns its output. VPP carries it out on
// its main thread, between requests. The error of a VPP that is not connected is
// conn.ErrLost. That of a line that VPP refuses has VPP's text.
func (p *Plugin) Command(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	reply := &vlib.CliInbandReply{}
	err := p.manager.Call(ctx, &vlib.CliInband{Cmd: line}, reply)
	if errors.Is(err, conn.ErrLost) {
		return "", notConnected(p.manager.Info().Err)
	}
	// The output of a command that fails has the reason; the return value is the same for all.
	if _, refused := errors.AsType[*conn.Refusal](err); refused && reply.Reply != "" {
		return "", fmt.Errorf("VPP command %q: %s", line, strings.TrimSpace(reply.Reply))
	}
	if err != nil {
		return "", fmt.Errorf("VPP command %q: %w", line, err)
	}
	return reply.Reply, nil
}

// notConnected returns conn.ErrLost with its reason. The reason of a connection that ended begins
// with it already; without a first attempt there is none.
func notConnected(why error) error {
	switch {
	case why == nil:
		return conn.ErrLost
	case errors.Is(why, conn.ErrLost):
		return why
	}
	return fmt.Errorf("%w: %w", conn.ErrLost, why)
}

// Connection returns the state of the connection, without asking VPP.
func (p *Plugin) Connection() conn.Info { return p.manager.Info() }

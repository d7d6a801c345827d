package client

import (
	"cmp"
	"context"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/keyplane/keyplane/internal/reach"
)

// An Agent says which agent Dial connects to; the zero value is the agent with the label vpp1 on
// this host.
type Agent struct {
	// Label of the agent. Each call names it, and an agent with another label refuses the
	// call. Defaults to vpp1 for the socket, and otherwise to none: any agent serves the calls.
	Label string
	// Address of its gRPC server: host:port, or unix:PATH for "network: unix" in grpc.conf.
	// Defaults to the agent's own socket if an agent listens there that this user may open,
	// and otherwise to 127.0.0.1:9111.
	Address string
	// Socket is the path of the agent's own socket. Defaults to that of the label: of an agent of this user, or of
	// root's agent if this user may open it.
	Socket string
	// Credentials of the connection to an Address that is given. Defaults to no TLS.
	Credentials credentials.TransportCredentials
}

// Dial returns a connection for NewRemote, as agentctl finds the agent. The first call connects. The
// caller closes it. More options are passed to gRPC.
func Dial(ctx context.Context, a Agent, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	// The agent bounds its answers; all values may be more than the 4 MiB of gRPC's default.
	options := append(reach.Naming(a.Label), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	options = append(options, more...)
	socket := cmp.Or(a.Socket, reach.Find(cmp.Or(a.Label, "vpp1")))
	if a.Address == "" && (a.Socket != "" || reach.Listens(ctx, socket)) {
		return grpc.NewClient(reach.Target, append(reach.Through(socket), options...)...)
	}
	secure := a.Credentials
	if secure == nil {
		secure = insecure.NewCredentials()
	}
	return grpc.NewClient(cmp.Or(a.Address, "127.0.0.1:9111"), append(options, grpc.WithTransportCredentials(secure))...)
}

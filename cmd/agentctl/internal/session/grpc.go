package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// mostAnswer bounds an answer of the agent, in bytes. The default of gRPC, 4 MiB, is less than
// the configuration of a large network.
const mostAnswer = 512 << 20

// WithGRPC wraps a command that calls the agent by gRPC: it opens the connection, applies the
// timeout, and explains errors. The first call dials.
func (s *Session) WithGRPC(f func(ctx context.Context, conn *grpc.ClientConn, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), s.Timeout)
		defer cancel()
		conn, err := s.DialGRPC(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return s.ExplainGRPC(f(ctx, conn, args))
	}
}

// DialGRPC returns a connection to the agent that the settings name: to its own socket, as for
// HTTP, or to its gRPC server. The caller closes it, and passes errors of calls through
// ExplainGRPC. It connects at the first call.
func (s *Session) DialGRPC(ctx context.Context) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer))}
	if s.labelGiven {
		options = append(options, reach.Naming(s.Label)...)
	}
	if s.grpcBySocket(ctx) {
		s.grpcName = s.Socket
		return grpc.NewClient(reach.Target, append(options, reach.Through(s.Socket)...)...)
	}
	s.grpcName = net.JoinHostPort(s.Host, strconv.Itoa(s.GRPCPort))
	target := "passthrough:///" + s.grpcName
	// The owner of this socket is not checked, unlike that of the agent's own one: it serves users
	// other than the agent's. The user who names the path trusts it.
	if s.GRPCSocket != "" {
		s.grpcName, target = s.GRPCSocket, "unix:"+s.GRPCSocket
	}
	security, err := s.grpcCredentials()
	if err != nil {
		return nil, fmt.Errorf("grpc-tls: %w", err)
	}
	return grpc.NewClient(target, append(options, grpc.WithTransportCredentials(security))...)
}

// grpcBySocket reports whether calls go to the agent's own socket. Any setting that only an
// address has, such as a port, another socket or TLS, means an agent that may not be that of the label.
func (s *settings) grpcBySocket(ctx context.Context) bool {
	if s.grpcGiven || s.bySocket {
		return !s.grpcGiven
	}
	return !s.byHTTP && !s.GRPCTLS.enabled() && reach.Listens(ctx, s.Socket)
}

// grpcCredentials returns TLS or none. The flag --insecure-tls overrides the configuration file,
// as it does for HTTP.
func (s *Session) grpcCredentials() (credentials.TransportCredentials, error) {
	security := s.overridden(s.GRPCTLS)
	if !security.enabled() {
		return insecure.NewCredentials(), nil
	}
	config, err := security.config()
	if err != nil {
		return nil, err
	}
	config.MinVersion = tls.VersionTLS12 // what the agent's server expects at least
	return credentials.NewTLS(config), nil
}

// ExplainGRPC returns the error of a call for people. Values that the agent names are on a line
// each. Other errors are returned unchanged.
func (s *Session) ExplainGRPC(err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	text, values := st.Message(), valueLines(st)
	switch code := st.Code(); {
	case code == codes.DeadlineExceeded && len(values) > 0:
		return errors.New("values are still pending:" + strings.Join(values, ""))
	case code == codes.DeadlineExceeded:
		return fmt.Errorf("the agent at %s does not answer in time: %w", s.grpcName, context.DeadlineExceeded)
	case code == codes.Canceled:
		return fmt.Errorf("interrupted: %w", context.Canceled)
	case len(values) > 0:
		return errors.New("values failed:" + strings.Join(values, ""))
	case code == codes.Unavailable:
		return s.unavailable(text)
	case code == codes.Unimplemented:
		return fmt.Errorf("the agent at %s lacks this call: %s", s.grpcName, show.Remote(text))
	}
	return errors.New(show.Remote(text))
}

// Check has the agent check the values of a request, without declaring them. It returns those that it refuses.
func Check(ctx context.Context, manager generic.ManagerServiceClient, request *generic.SetConfigRequest) (refused []wire.Invalid, err error) {
	_, err = manager.SetConfig(metadata.AppendToOutgoingContext(ctx, "dry-run", "true"), request)
	st, _ := status.FromError(err)
	for _, d := range st.Details() {
		if v, ok := d.(*kvscheduler.ValueStatus); ok {
			refused = append(refused, wire.Invalid{Key: v.GetKey(), Error: v.GetError(), Fields: v.GetDetails()})
		}
	}
	if refused != nil {
		return refused, nil
	}
	return nil, err
}

// unavailable returns the error of a call that has reached no gRPC server. The text is that of
// the connection.
func (s *Session) unavailable(text string) error {
	refused := strings.Contains(text, "connection refused") || strings.Contains(text, "no such file")
	switch dialed := !strings.Contains(text, "Error while dialing"); { // the agent's own texts name such errors of VPP, too
	case dialed || !refused:
		return fmt.Errorf("agent at %s: %s", s.grpcName, show.Remote(text))
	case s.grpcName == s.Socket:
		return fmt.Errorf("no agent listens at %s: is it running?", s.grpcName)
	default:
		return fmt.Errorf("no agent serves gRPC at %s: is it running, and does its grpc.conf have this endpoint?", s.grpcName)
	}
}

// valueLines returns a line, with a line feed before it, for each value in the details of a
// status. The agent sends as many as fit.
func valueLines(st *status.Status) (out []string) {
	for _, d := range st.Details() {
		v, ok := d.(*kvscheduler.ValueStatus)
		if !ok {
			continue
		}
		reason := v.GetError()
		if reason == "" { // a pending value has the labels of its unmet dependencies
			reason = strings.Join(v.GetDetails(), ", ")
		}
		out = append(out, "\n  "+strings.TrimSuffix(show.Remote(v.GetKey()+" is "+v.GetState().String()+": "+reason), ": "))
	}
	return out
}

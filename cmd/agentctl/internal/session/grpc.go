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
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// mostAnswer bounds an answer of the agent, in bytes. The default of gRPC, 4 MiB, is less than
// the configuration of a large network.
const mostAnswer = 1 << 30

// WithGRPC wraps a command that calls the agent by gRPC: it opens the connection, applies the
// timeout, and explains errors. The first call dials.
func (s *Session) WithGRPC(f func(ctx context.Context, conn *grpc.ClientConn, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), s.Timeout)
		defer cancel()
		conn, err := s.DialGRPC()
		if err != nil {
			return err
		}
		defer conn.Close()
		return s.ExplainGRPC(f(ctx, conn, args))
	}
}

// DialGRPC returns a connection to the gRPC server of the agent. The caller closes it, and passes
// errors of calls through ExplainGRPC. It connects at the first call.
func (s *Session) DialGRPC() (*grpc.ClientConn, error) {
	if s.bySocket && !s.grpcGiven { // another agent may have the default port
		return nil, Usagef("the agent at %s was chosen by its socket, which does not serve gRPC: expected --grpc-port with the port of its gRPC server", s.Socket)
	}
	security, err := s.grpcCredentials()
	if err != nil {
		return nil, fmt.Errorf("grpc-tls: %w", err)
	}
	return grpc.NewClient("passthrough:///"+s.grpcAddress(), grpc.WithTransportCredentials(security),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer)))
}

func (s *Session) grpcAddress() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.GRPCPort)) }

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
	case code == codes.Unavailable && strings.Contains(text, "connection refused"):
		return fmt.Errorf("no agent serves gRPC at %s: is it running, and does its grpc.conf have this endpoint?", s.grpcAddress())
	case code == codes.DeadlineExceeded && len(values) > 0:
		return errors.New("values are still pending:" + strings.Join(values, ""))
	case code == codes.DeadlineExceeded:
		return fmt.Errorf("the agent at %s does not answer in time: %w", s.grpcAddress(), context.DeadlineExceeded)
	case code == codes.Canceled:
		return context.Canceled
	case len(values) > 0:
		return errors.New("values failed:" + strings.Join(values, ""))
	case code == codes.Unavailable:
		return fmt.Errorf("agent at %s: %s", s.grpcAddress(), show.Remote(text))
	case code == codes.Unimplemented:
		return fmt.Errorf("the agent at %s lacks this call: %s", s.grpcAddress(), show.Remote(text))
	}
	return errors.New(show.Remote(text))
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

package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// call returns the command that calls a method.
func call(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "call SERVICE METHOD [REQUEST]",
		Aliases: []string{"c"},
		Short:   "Calls a method",
		Long: "Call calls METHOD of the gRPC SERVICE with REQUEST, which is JSON, and prints the answer as JSON. Without REQUEST it is read from standard\n" +
			"input. Empty input is an empty request. Of a stream each answer is printed; it ends with the timeout (--timeout), or when it is interrupted.",
		Example: "  echo '{\"class\": \"config\"}' | agentctl service call ligato.generic.MetaService KnownModels",
		Args:    session.ExpectArgs("SERVICE", "METHOD", "[REQUEST]"),
	}
	f := show.FormatFlag(cmd, s, "proto")
	cmd.RunE = s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, args []string) error {
		server, names, err := reflect(ctx, conn)
		if err != nil {
			return err
		}
		if !slices.Contains(names, args[0]) {
			return unknown("service", args[0], names)
		}
		d, files, err := server.service(args[0])
		if err != nil {
			return err
		}
		m := d.Methods().ByName(protoreflect.Name(args[1]))
		if m == nil {
			return unknown("method of "+args[0], args[1], methodNames(d))
		}
		types := resolver{dynamicpb.NewTypes(files), server}
		in, place := s.In, "standard input"
		if len(args) > 2 {
			in, place = strings.NewReader(args[2]), "REQUEST"
		} else if show.IsTerminal(s.In) {
			fmt.Fprintf(s.Err, "Type the %s as JSON, and end it with Ctrl-D:\n", m.Input().FullName())
		}
		requests, err := readRequests(in, place, m, types)
		if err != nil {
			return err
		}
		return invoke(ctx, conn, m, requests, func(answer *dynamicpb.Message) error { return printAnswer(s.Out, f, types, answer) })
	})
	return cmd
}

// methodNames returns the names of the methods of a service.
func methodNames(d protoreflect.ServiceDescriptor) (out []string) {
	for _, m := range methodsOf(d) {
		out = append(out, m.Name)
	}
	return out
}

// A resolver finds the types of messages in a google.protobuf.Any, in which values of models travel:
// among those of the service's files, those that agentctl was built with, and all others that the
// agent knows.
type resolver struct {
	*dynamicpb.Types
	agent *reflection
}

// FindMessageByURL implements protojson's Resolver.
func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if m, err := protoregistry.GlobalTypes.FindMessageByURL(url); err == nil {
		return m, nil
	}
	if m, err := r.Types.FindMessageByURL(url); err == nil {
		return m, nil
	}
	files, err := r.agent.files(url[strings.LastIndexByte(url, '/')+1:])
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", url, err)
	}
	return dynamicpb.NewTypes(files).FindMessageByURL(url)
}

// readRequests reads the requests: several JSON texts for a stream of requests, otherwise at most
// one. Empty input is an empty request.
func readRequests(in io.Reader, place string, m protoreflect.MethodDescriptor, types resolver) (out []*dynamicpb.Message, err error) {
	texts := json.NewDecoder(in)
	for {
		var text json.RawMessage
		switch err := texts.Decode(&text); {
		case errors.Is(err, io.EOF) && len(out) == 0 && !m.IsStreamingClient():
			return []*dynamicpb.Message{dynamicpb.NewMessage(m.Input())}, nil
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", place, err)
		case len(out) == 1 && !m.IsStreamingClient():
			return nil, fmt.Errorf("%s: two JSON texts: %s takes one request", place, m.Name())
		}
		request := dynamicpb.NewMessage(m.Input())
		if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(text, request); err != nil {
			return nil, fmt.Errorf("%s: %s: expected a %s", place, show.JSONError(err), m.Input().FullName())
		}
		out = append(out, request)
	}
}

// invoke calls a method, and answered for each answer. A call that is no stream is one with one
// request and one answer.
func invoke(ctx context.Context, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, requests []*dynamicpb.Message, answered func(*dynamicpb.Message) error) error {
	path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path)
	if err != nil {
		return err
	}
	for _, q := range requests {
		if err := stream.SendMsg(q); err != nil && !errors.Is(err, io.EOF) { // after EOF, RecvMsg has the error
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		answer := dynamicpb.NewMessage(m.Output())
		switch err := stream.RecvMsg(answer); {
		case errors.Is(err, io.EOF):
			return nil
		case m.IsStreamingServer() && (ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded) && hasAnswered(stream):
			return nil // the agent may find the end of the time first
		case err != nil:
			return err
		}
		if err := answered(answer); err != nil {
			return err
		}
	}
}

// hasAnswered reports whether the agent has begun to answer a call that has ended.
func hasAnswered(stream grpc.ClientStream) bool {
	header, err := stream.Header()
	return err == nil && header != nil
}

// printAnswer prints an answer as JSON unless the user wants another format.
func printAnswer(out io.Writer, f *show.Format, types resolver, answer *dynamicpb.Message) error {
	if f.Word() == "proto" {
		return f.Write(out, answer, nil)
	}
	text, err := protojson.MarshalOptions{Resolver: types}.Marshal(answer)
	if err != nil {
		return err
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	return f.Write(out, fields, func(out io.Writer) error { return show.As("json").Write(out, fields, nil) })
}

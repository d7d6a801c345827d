package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// watch returns the command that prints notifications.
func watch(s *session.Session) *cobra.Command {
	var filters []string
	cmd := &cobra.Command{
		Use:     "watch",
		Aliases: []string{"notify", "subscribe"},
		Short:   "Prints events of the interfaces of VPP and Linux",
		Long: "Watch prints the events of interfaces that the agent remembers, and then each new one, until it is interrupted or --timeout ends it.\n" +
			"A filter is a notification in JSON: an event is printed if it has all that one of the filters has.",
		Example: `  agentctl config watch --filter '{"vpp_notification": {"interface": {"type": "UPDOWN"}}}'`,
		Args:    session.ExpectArgs(),
	}
	cmd.Flags().StringArrayVar(&filters, "filter", nil, "print only events that have all that this notification has, in JSON (several: or)")
	f := show.FormatFlag(cmd, s, "proto")
	cmd.RunE = s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, _ []string) error {
		request := &configurator.NotifyRequest{}
		for _, text := range filters {
			n := &configurator.Notification{}
			if err := protojson.Unmarshal([]byte(text), n); err != nil {
				return session.Usagef("filter %q: %s: expected JSON such as {\"vpp_notification\": {\"interface\": {}}}", text, show.JSONError(err))
			}
			request.Filters = append(request.Filters, n)
		}
		if !cmd.Flags().Changed("timeout") { // the timeout of the other commands is no reason to end
			ctx = cmd.Context()
		}
		// A stream without events cannot be told from one to a server that does not answer.
		if _, err := generic.NewMetaServiceClient(conn).KnownModels(ctx, &generic.KnownModelsRequest{Class: session.MetricsClass}); err != nil {
			return err
		}
		stream, err := configurator.NewConfiguratorServiceClient(conn).Notify(ctx, request)
		for number := 1; err == nil; number++ {
			var got *configurator.NotifyResponse
			if got, err = stream.Recv(); err == nil {
				err = printEvent(s.Out, f, number, got.GetNotification())
			}
		}
		// The user has ended it. The agent knows the deadline too, and may notice it before this
		// process does.
		if code := status.Code(err); code == codes.Canceled || code == codes.DeadlineExceeded || errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return cmd
}

// printEvent prints one notification. Its number counts those that were printed.
func printEvent(out io.Writer, f *show.Format, number int, n *configurator.Notification) error {
	if f.Word() == "proto" {
		return f.Write(out, n, nil)
	}
	fields, err := fieldsOf(n)
	if err != nil {
		return err
	}
	return f.Write(out, fields, func(out io.Writer) error {
		source := "VPP"
		var event proto.Message = n.GetVppNotification()
		if n.GetLinuxNotification() != nil {
			source, event = "LINUX", n.GetLinuxNotification()
		}
		value, err := models.Text(event, true)
		if err != nil {
			return err
		}
		const line = "------------------"
		_, err = fmt.Fprintf(out, "%s\n NOTIFICATION #%d\n%s\nSource: %s\nValue: %s\n\n", line, number, line, source, strings.TrimSuffix(printable.Text(value), "\n"))
		return err
	})
}

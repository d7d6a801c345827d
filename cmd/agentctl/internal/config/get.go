package config

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// get returns the command that prints the declared values.
func get(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Prints the declared values that take effect",
		Long: "Get prints the values that stores and clients have declared and that take effect, as one YAML document that config update reads.\n" +
			hiddenHelp,
		Example: "  agentctl config get > network.yaml\n  agentctl config get --secrets > network.yaml",
		Args:    session.ExpectArgs(),
	}
	labels := labelsFlag(cmd.Flags(), "print only values with all of these labels: NAME for any value, NAME=VALUE, !NAME for\nthose without it, !NAME=VALUE for those without it or with another value; separated by commas")
	secrets := secretsFlag(cmd)
	f := show.FormatFlag(cmd, s, "proto")
	cmd.RunE = s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, _ []string) error {
		known, err := session.Registry(ctx, conn)
		if err != nil {
			return err
		}
		answer, err := generic.NewManagerServiceClient(conn).GetConfig(ctx, &generic.GetConfigRequest{Labels: labels})
		if err != nil {
			return err
		}
		var messages []proto.Message
		for _, item := range answer.GetItems() {
			m, err := messageOf(known, item.GetItem())
			if err != nil {
				return err
			}
			messages = append(messages, m)
		}
		if messages, err = shown(s, messages, *secrets); err != nil {
			return err
		}
		n, err := networkOf(known, messages)
		if err != nil {
			return err
		}
		return n.write(s.Out, show.IsTerminal(s.Out), f)
	})
	return cmd
}

// retrieve returns the command that prints the actual values.
func retrieve(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "retrieve",
		Aliases: []string{"ret", "read", "dump"},
		Short:   "Prints the actual values, read back now",
		Long: "Retrieve reads the actual values back from Linux and VPP, and prints them as one YAML document. Values of models that have no field\n" +
			"in the message ligato.configurator.Config are left out; the command dump prints those too.\n" +
			hiddenHelp,
		Example: "  agentctl config retrieve",
		Args:    session.ExpectArgs(),
	}
	secrets := secretsFlag(cmd)
	f := show.FormatFlag(cmd, s, "proto")
	cmd.RunE = s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, _ []string) error {
		known, err := session.Registry(ctx, conn)
		if err != nil {
			return err
		}
		answer, err := configurator.NewConfiguratorServiceClient(conn).Dump(ctx, &configurator.DumpRequest{})
		if err != nil {
			return err
		}
		messages, err := shown(s, messagesIn(answer.GetDump()), *secrets)
		if err != nil {
			return err
		}
		n, err := networkOf(known, messages)
		if err != nil {
			return err
		}
		return n.write(s.Out, show.IsTerminal(s.Out), f)
	})
	return cmd
}

// messagesIn returns the values in the groups of a Config.
func messagesIn(c *configurator.Config) (out []proto.Message) {
	c.ProtoReflect().Range(func(_ protoreflect.FieldDescriptor, group protoreflect.Value) bool {
		group.Message().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if !field.IsList() {
				out = append(out, v.Message().Interface())
				return true
			}
			for i := range v.List().Len() {
				out = append(out, v.List().Get(i).Message().Interface())
			}
			return true
		})
		return true
	})
	return out
}

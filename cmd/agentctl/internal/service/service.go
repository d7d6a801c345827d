// Package service has the command service of agentctl: it lists the gRPC services of the agent, and
// calls their methods with requests in JSON. It learns the messages from the agent, so it calls
// services that agentctl was not built with, too.
package service

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/nearest"
)

// Command returns the command about gRPC services. By itself it prints its help.
func Command(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:     "service",
		Short:   "Lists and calls the gRPC services of the agent",
		Example: "  agentctl service list",
	})
	cmd.AddCommand(list(s), call(s))
	return cmd
}

// A listed is a service in the list. The names of its fields are an interface of scripts.
type listed struct {
	Service string
	File    string   `json:",omitempty"` // the .proto file that declares it; empty without methods
	Methods []method `json:",omitempty"`
}

// A method is a method of a service.
type method struct {
	Name            string
	Request, Answer string // full names of the messages
	// Streams of requests, or of answers.
	Requests, Answers bool `json:",omitempty"`
}

// list returns the command that prints services.
func list(s *session.Session) *cobra.Command {
	var methods bool
	cmd := &cobra.Command{
		Use:     "list [SERVICE]",
		Aliases: []string{"ls", "l"},
		Short:   "Prints the gRPC services",
		Long:    "List prints the names of all services, or of those with SERVICE in their names; with -m also their methods, as .proto files declare them.",
		Example: "  agentctl service list\n  agentctl service list MetaService -m",
		Args:    session.ExpectArgs("[SERVICE]"),
	}
	cmd.Flags().BoolVarP(&methods, "methods", "m", false, "print the methods of each service, too")
	f := show.FormatFlag(cmd, s)
	cmd.RunE = s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, args []string) error {
		server, names, err := reflect(ctx, conn)
		if err != nil {
			return err
		}
		shown := []listed{}
		for _, name := range names {
			if len(args) > 0 && !strings.Contains(name, args[0]) {
				continue
			}
			one := listed{Service: name}
			if methods {
				d, _, err := server.service(name)
				if err != nil {
					return err
				}
				one.File, one.Methods = d.ParentFile().Path(), methodsOf(d)
			}
			shown = append(shown, one)
		}
		if len(shown) == 0 && len(args) > 0 {
			return unknown("service", args[0], names)
		}
		return f.Write(s.Out, shown, func(out io.Writer) error { return printServices(out, shown) })
	})
	return cmd
}

// methodsOf returns the methods of a service.
func methodsOf(d protoreflect.ServiceDescriptor) (out []method) {
	for i := range d.Methods().Len() {
		m := d.Methods().Get(i)
		out = append(out, method{
			string(m.Name()), string(m.Input().FullName()), string(m.Output().FullName()), m.IsStreamingClient(), m.IsStreamingServer(),
		})
	}
	return out
}

// printServices prints one service per line. With methods, it prints them as vpp-agent 3.5: below their service with its
// file, by the names of messages without their package.
func printServices(out io.Writer, all []listed) error {
	var b strings.Builder
	stream := map[bool]string{true: "stream "}
	short := func(message string) string { return message[strings.LastIndexByte(message, '.')+1:] }
	for _, one := range all {
		if one.File == "" {
			b.WriteString(show.Line(one.Service) + "\n")
			continue
		}
		b.WriteString(show.Line("service "+one.Service+" ("+one.File+")") + "\n")
		for _, m := range one.Methods {
			b.WriteString(show.Line(" - rpc "+m.Name+" ("+stream[m.Requests]+short(m.Request)+") returns ("+stream[m.Answers]+short(m.Answer)+")") + "\n")
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// unknown returns the error of a name that the server does not have. It names the most similar one.
func unknown(kind, name string, known []string) error {
	if near := nearest.Word(name, known); near != "" {
		return session.Usagef("no %s is called %q: did you mean %s?", kind, name, show.Line(near))
	}
	return session.Usagef("no %s is called %q: expected one of %s", kind, name, show.Line(strings.Join(slices.Sorted(slices.Values(known)), ", ")))
}
